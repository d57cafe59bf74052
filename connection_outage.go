package asterisque

import (
	"context"
	"fmt"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/call"
)

// NotConnectedError is the reason why a [Connection] has no session for new calls. It is the cause
// of the error of a call that waited for a session in vain, or did not wait because of
// [WithFailFast]; find it by [errors.As]. The error of the network itself is Why.
type NotConnectedError struct {
	Peer  string    // the URL without its secrets, or "the peer"
	Since time.Time // begin of the time without a session
	Why   error     // error of the session, or of the last attempt; nil until the first has failed
	Next  time.Time // time of the next attempt, or of the current one; zero: the first is under way
}

// Error returns all fields as text, with times of the local clock.
func (o *NotConnectedError) Error() string {
	const clock = "15:04:05.000"
	text := fmt.Sprintf("there is no session with %s since %s", o.Peer, o.Since.Format(clock))
	if o.Why != nil {
		text += fmt.Sprintf(" (%v)", o.Why)
	}
	if !o.Next.IsZero() {
		text += ", next attempt at " + o.Next.Format(clock)
	}
	return text
}

// note records an event of the connection.
func (o *NotConnectedError) note(e connectionEvent, err error) {
	switch {
	case e == sessionUp:
		*o = NotConnectedError{Peer: o.Peer}
	case o.Since.IsZero():
		*o = NotConnectedError{Peer: o.Peer, Since: time.Now(), Why: err}
	case err != nil:
		o.Why = err
	}
}

// Outage returns the reason why there is no session for new calls, or nil if there is one.
func (c *Connection) Outage() *NotConnectedError {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.outage.Since.IsZero() {
		return nil
	}
	o := c.outage
	return &o
}

// nextAttempt records the time of the next attempt, and the error of the last one, unless err is
// nil.
func (c *Connection) nextAttempt(wait time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.outage.Why = err
	}
	c.outage.Next = time.Now().Add(wait)
}

// waitedInVain returns the error of a call if its context ended before there was a session.
func (c *Connection) waitedInVain(ctx context.Context) *Abort {
	return c.because(call.WaitedFor(ctx, "a session"))
}

// unavailable returns the error of a call that did not wait for a session.
func (c *Connection) unavailable() *Abort {
	return c.because(codec.ErrUnavailable.Withf("the call does not wait for a session"))
}

// because returns a, the error of a call without a session, with the outage as its cause.
func (c *Connection) because(a *Abort) *Abort {
	a = aborts.NeverSent(a)
	if o := c.Outage(); o != nil {
		a.Cause = o
	}
	return a
}

// When the peer of a connection's session announces a shutdown (Drain), the connection opens
// another session for new calls, and the old one is retired: it continues until its calls have
// ended, and is then closed.

const (
	// mostRetired bounds the retired sessions of a connection; above it, no new session is made. A
	// peer that announces shutdowns repeatedly, with calls that run forever, occupies no more than
	// these.
	mostRetired = 16

	// lateCalls is the time for the peer's calls in a retired session after the last call of this
	// side.
	lateCalls = time.Minute
)

// retire keeps s until its calls have ended.
func (c *Connection) retire(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retired++
	go func() { // ends with the session
		c.seeOff(s)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.retired--
		c.signalLocked()
	}()
}

// seeOff waits for the end of a retired session, or ends it. Calls of this side have unlimited
// time, and so have nested calls of the peer within them; other calls of the peer have lateCalls
// after that. If the Wire is lost, the session ends: its peer shuts down, and durable calls have
// another session.
func (c *Connection) seeOff(s *Session) {
	answered := s.calls.Answered()
	for {
		changed := c.changes()
		switch {
		case c.ctx.Err() != nil:
			s.calls.Fail(aborts.Of(c.Err()))
		case s.Away():
			s.calls.Fail(codec.ErrUnavailable.Withf("the wire was lost while the peer was shutting the session down"))
		}
		select {
		case <-s.Done():
			s.calls.Carrier.Wait()
			return
		case <-answered:
			ctx, cancel := context.WithTimeout(c.ctx, lateCalls)
			defer cancel()
			s.Shutdown(ctx)
			return
		case <-changed:
		case <-c.ctx.Done():
		}
	}
}
