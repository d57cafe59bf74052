package asterisque

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/codec"
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

// session returns the session to call on.
func (c *Connection) session(ctx context.Context, cfg *callConfig) (*Session, *Abort) {
	c.mu.Lock()
	s, state := c.current, c.state
	c.mu.Unlock()
	switch {
	case takesCalls(s) && (!s.Away() || state == Connected && !cfg.failFast):
		// one that has just come back is up, whatever state says yet
		return s, nil
	case c.ctx.Err() != nil:
		return nil, neverSent(c.Err())
	case cfg.failFast:
		return nil, neverSent(codec.ErrUnavailable.Withf("there is no connection with %s at the moment", c.name()))
	}
	if cfg.ttl > 0 { // the wait is part of it; such a cfg is the call's own
		end := time.Now().Add(cfg.ttl)
		defer func() { cfg.ttl = max(time.Until(end), 1) }()
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end)
		defer cancel()
	}
	return c.wait(ctx)
}

// Invoke implements [Caller]: it makes call on the present session. If the peer has shut that down
// meanwhile, so that call certainly did not run, it makes it on the next one; a durable one
// ([WithDurable]) on one session after the other until it is answered.
func (c *Connection) Invoke(ctx context.Context, call *Call) error {
	m, a := makingOf(call)
	if a != nil {
		return a
	}
	if m.cfg.durable && !m.blocks {
		return c.durably(ctx, m)
	}
	var end time.Time
	if m.cfg.ttl > 0 {
		end = time.Now().Add(m.cfg.ttl)
	}
	for {
		s, a := c.session(ctx, m.cfg)
		if a != nil {
			return a
		}
		err := s.Invoke(ctx, call)
		if err == nil || !overtaken(s, err) || c.ctx.Err() != nil {
			return err
		}
		if !end.IsZero() {
			m.own().ttl = max(time.Until(end), 1)
		}
	}
}
