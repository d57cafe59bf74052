package asterisque

import (
	"context"

	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/pipe"
)

// Call is [Session.Call] on the present session.
func (c *Connection) Call(ctx context.Context, function uint16, params []byte, opts ...CallOption) ([]byte, error) {
	return CallOn(ctx, c, function, params, opts...)
}

// Open is [Session.Open] on the present session.
func (c *Connection) Open(life context.Context, function uint16, params []byte, opts ...CallOption) (*pipe.Pipe, error) {
	return OpenOn(life, c, function, params, opts...)
}

// session returns the session for a call.
func (c *Connection) session(ctx context.Context, m *interceptedOutbound) (*Session, *Abort) {
	c.mu.Lock()
	s, state := c.current, c.state
	c.mu.Unlock()
	switch {
	case takesCalls(s) && (!s.Away() || state == Connected && !m.cfg.failFast):
		// a session that has just resumed is up, even if state is behind
		return s, nil
	case c.ctx.Err() != nil:
		return nil, aborts.NeverSent(c.Err())
	case m.cfg.failFast:
		return nil, c.unavailable()
	}
	if !m.expires.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, m.expires)
		defer cancel()
	}
	return c.wait(ctx)
}

// Invoke implements [Caller]: it makes call on the present session, for which it waits. If the
// session ends meanwhile, and call certainly did not run, Invoke makes it on the next one. A
// durable call ([WithDurable]) is made on one session after the other until it is answered.
func (c *Connection) Invoke(ctx context.Context, call *Call) error {
	m, a := makingOf(call)
	switch {
	case a != nil:
		return a
	case c == nil:
		return errNoConnection
	}
	if m.cfg.Durable && !m.blocks {
		return c.durably(ctx, m)
	}
	for {
		s, a := c.session(ctx, m)
		if a != nil {
			return a
		}
		ran := m.mayHaveRun()
		err := s.Invoke(ctx, call)
		if err == nil || m.mayHaveRun() > ran || !overtaken(s, err) || c.ctx.Err() != nil {
			return err
		}
	}
}

// Ready reports whether there is a session for new calls with a connected Wire, so that a call is
// sent without waiting for one.
func (c *Connection) Ready() bool {
	_, ok := c.Choose()
	return ok
}

// Choose implements [Chooser].
func (c *Connection) Choose() (Choice, bool) {
	if c == nil {
		return Choice{}, false
	}
	s := c.chosen.Load()
	return Choice{Session: s}, takesCalls(s) && !s.Away()
}

// Chosen implements [Chooser].
func (c *Connection) Chosen(by Choice, err error) (again Caller) {
	if c != nil && err != nil && overtaken(by.Session, err) && c.ctx.Err() == nil {
		return c
	}
	return nil
}
