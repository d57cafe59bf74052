package asterisque

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
)

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
