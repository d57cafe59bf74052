package asterisque

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/callback"
)

// newConnection returns a connection without a session. The caller runs it.
func newConnection(n *Node, life context.Context, url string, how ReconnectConfig) *Connection {
	c := &Connection{node: n, url: url, how: how, over: make(chan struct{}), changed: make(chan struct{})}
	c.dials = callback.NewQuery(n.cfg.log, "ReconnectConfig.Dial", "ReconnectConfig.Dial", mostDials)
	c.ctx, c.end = context.WithCancelCause(life)
	c.outage = NotConnectedError{Peer: c.name(), Since: time.Now()}
	c.durable.init(how.Durable)
	if c.how.First == 0 {
		c.how.First = time.Second
	}
	return c
}

// run maintains a session until the connection ends.
func (c *Connection) run() {
	returned := false
	defer func() {
		if !returned { // a Wire of the application has ended the goroutine
			go c.conclude(c.Session()) // ends as this one would have
		}
	}()
	s := c.keepSession()
	returned = true
	c.conclude(s)
}

// conclude ends all sessions of the connection, s included, unless that is nil.
func (c *Connection) conclude(s *Session) {
	defer close(c.over)
	defer c.node.connections.Remove(c)
	c.end(codec.ErrPanicked.Withf("the application has ended the goroutine of the connection"))
	if s != nil {
		s.calls.Fail(aborts.Of(c.Err()))
		s.calls.Carrier.Wait()
	}
	c.awaitRetired(context.Background(), 0)
	c.set(nil, connectionOver, c.Err())
}

// keepSession maintains a session until the connection ends. It returns the last one, or nil if
// that has ended.
func (c *Connection) keepSession() (s *Session) {
	var until time.Time // time until which s can be resumed; zero without s
	back := backoff{first: c.how.First, most: c.how.Most}
	for c.ctx.Err() == nil {
		next, err := c.connect(s, until, &back)
		if err != nil {
			c.end(err)
			break
		}
		s = next
		begin := time.Now()
		c.set(s, sessionUp, nil)
		err = c.watch(s)
		steady := time.Since(begin) >= leastSteady || s.calls.PeerDrains() && s.calls.Concluded()
		if s, until = c.resumable(s); s == nil && c.finishing.Load() {
			c.awaitRetired(c.ctx, 0)
			c.end(codec.ErrSessionClosed.Withf("the application has shut the connection down"))
			break
		}
		c.set(s, sessionDown, err)
		c.awaitRetired(c.ctx, mostRetired-1)
		if steady {
			c.rest(cutBefore(back.soon(), until))
		} else {
			c.rest(back.nextBefore(until))
		}
	}
	return s
}

// leastSteady is the minimum duration of a connection after which its loss begins a new series of
// attempts, unless the peer shuts down a session on which it has finished a call. Without a
// minimum, a peer that accepts and closes would keep both sides busy.
const leastSteady = time.Second

// rest waits for d, or until the connection ends.
func (c *Connection) rest(d time.Duration) {
	c.nextAttempt(d, nil)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.ctx.Done():
	}
}

// watch waits until s takes no more new calls, and returns the reason: its Wire is lost, it has
// ended, or its peer shuts it down.
func (c *Connection) watch(s *Session) error {
	for {
		changed := c.changes()
		switch {
		case s.calls.PeerDrains():
			return codec.ErrUnavailable.Withf("the peer shuts the session down")
		case s.Away():
			return codec.ErrUnavailable.Withf("the wire is lost")
		}
		select {
		case <-changed:
		case <-s.calls.Carrier.Gone():
			return s.Err()
		case <-c.ctx.Done():
			return c.Err()
		}
	}
}

// resumable returns s, which takes no more new calls, and the time until which it can be resumed.
// Otherwise s has ended, or is retired, and resumable returns nil.
func (c *Connection) resumable(s *Session) (*Session, time.Time) {
	switch {
	case s.calls.Context().Err() != nil:
		s.calls.Carrier.Wait()
		return nil, time.Time{}
	case s.calls.PeerDrains():
		c.retire(s)
		return nil, time.Time{}
	}
	return s, time.Now().Add(s.cfg.resumeFor)
}
