package asterisque

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/codec"
)

// When the peer of a connection's session announces the end (Drain), the connection takes another
// session for new calls, and the old one retires: it goes on until its calls are over, and is then
// closed.

const (
	// mostRetired is how many sessions of a connection may retire at once; before there is another
	// one too many, no new session is made. A peer that announces the end again and again, and lets
	// calls run for ever, holds no more than these.
	mostRetired = 16

	// lateCalls is how long the peer's calls may go on in a session that retires when this side has
	// none there any more.
	lateCalls = time.Minute
)

// retire lets s go on until its calls are over.
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

// seeOff waits for the end of a session that retires, and sees to it. Calls of this side have the
// time they need, and so have those that the peer makes within them; the others of the peer have
// lateCalls after that. If the Wire is lost, the session ends: its peer is about to go, and durable
// calls have another one.
func (c *Connection) seeOff(s *Session) {
	answered := s.table.answered()
	for {
		changed := c.changes()
		switch {
		case c.ctx.Err() != nil:
			s.fail(abortOf(c.Err()))
		case s.Away():
			s.fail(codec.ErrUnavailable.Withf("the wire was lost while the peer was shutting the session down"))
		}
		select {
		case <-s.Done():
			s.carrier.Wait()
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
