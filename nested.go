package asterisque

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
)

// A handler may call its caller back, and that one may call again, and so on: calls within calls. The inner ones need what the outer ones hold while they wait for them: a
// worker, a key, a place at the gate of a function. So an Open tells within which call it is made, and the callee lets it use what that call holds.

// enclosure is a call from this side, as the calls of the peer that are made within it see it. If a handler made it, it lends them one worker beyond the limit, because the
// handler's own stands still meanwhile.
type enclosure struct {
	by       *incoming // the call whose handler made it; nil: no handler did; fixed, as function
	function uint16
	calls    line // guarded by the lock of the dispatcher, as all below: those that wait for the worker
	busy     bool // the worker is at work
	behind   bool // calls wait meanwhile, so that any worker may take them
}

// enclose returns the enclosure of a call that is made with ctx on s, or nil if no handler of s makes it.
func enclose(ctx context.Context, s *Session, function uint16) (*enclosure, *Abort) {
	c, ok := ctx.Value(incomingKey{}).(*incoming)
	switch {
	case !ok || c.s != s:
		return nil, nil
	case c.handler.inline:
		return nil, neverSent(codec.ErrUnavailable.Withf("the handler of function %d %q runs inline, so that the answer could not be read: register it without WithInline", c.function, c.handler.name))
	}
	return &enclosure{by: c, function: function}, nil
}

// enclosing returns lends, which is that of a call from this side, or that of a call which no handler made.
func enclosing(lends *enclosure, function uint16) *enclosure {
	if lends == nil {
		return &enclosure{function: function}
	}
	return lends
}

// meta returns what an Open says besides: the call it is made within, and what cfg has for it. It returns nil if that is nothing.
func (e *enclosure) meta(cfg *callConfig) *codec.Meta {
	if e == nil && len(cfg.key) == 0 && len(cfg.trace) == 0 {
		return nil
	}
	m := &codec.Meta{Key: cfg.key}
	if e != nil {
		m.Nested, m.Within = true, e.by.id()
	}
	if len(cfg.trace) <= codec.MaxTrace {
		m.Trace = cfg.trace
	}
	return m
}

// extra is what few calls of the peer have.
type extra struct {
	nested  bool           // it says within which call it was made; that one may be over
	turn    *turn          // nil if its function has no keys
	trace   []byte         // the peer's trace context
	key     []byte         // of a durable call
	memory  *memory        // of a durable call, from the moment it is let in
	params  *buffer.Buffer // what the parameters are in, if the handler only borrows them
	arrived time.Duration  // when, by the node's clock; 0 if this call is not timed
}

// extra returns the extra of c, of which it makes one if there is none.
func (c *incoming) extra() *extra {
	if c.rare == nil {
		c.rare = new(extra)
	}
	return c.rare
}

func (c *incoming) nested() bool { return c.rare != nil && c.rare.nested }

// lent reports whether c is made within a call of a handler, which lends it a worker.
func (c *incoming) lent() bool { return c.nest != nil && c.nest.by != nil }

func (c *incoming) turn() *turn {
	if c.rare == nil {
		return nil
	}
	return c.rare.turn
}

// encloses reports whether c is made within another call of the same function; if key is not nil, of the same function and key.
func (c *incoming) encloses(key *uint64) bool {
	for e := c.nest; e != nil && e.by != nil; e = e.by.nest {
		if e.by.handler != c.handler {
			continue
		}
		if t := e.by.turn(); key == nil || t != nil && t.key == *key {
			return true
		}
	}
	return false
}
