package asterisque

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec"
)

// A handler may call its caller back, and that one may call again, and so on: calls within calls.
// The outer ones wait for the inner ones, so these wait for nothing that an outer one may hold: no
// room, no window, no worker. They have room of their own, in bytes and in number, and are refused
// beyond it.

// deepest is how deep calls may be within calls.
const deepest = 64

// enclosure is a call from this side, as the calls of the peer that are made within it see it.
type enclosure struct {
	by       *incoming // the call whose handler made it; nil: no handler did; fixed, as all
	function uint16
	depth    int // within how many calls it is
}

// enclose returns the enclosure of a call that is made with ctx on s, or nil if no handler of s
// makes it.
func enclose(ctx context.Context, s *Session, function uint16) (*enclosure, *Abort) {
	c, ok := ctx.Value(incomingKey{}).(*incoming)
	switch {
	case !ok || c.s != s:
		return nil, nil
	case c.handler.inline:
		return nil, neverSent(codec.ErrUnavailable.Withf("the handler of function %d %q runs inline, so that the answer could not be read: register it without WithInline", c.function, c.handler.name))
	}
	e := &enclosure{by: c, function: function, depth: 1}
	if c.nest != nil {
		e.depth = c.nest.depth + 2
	}
	return e, nil
}

// enclosing returns lends, which is that of a call from this side, or that of a call which no
// handler made.
func enclosing(lends *enclosure, function uint16) *enclosure {
	if lends == nil {
		return &enclosure{function: function}
	}
	return lends
}

// meta returns what an Open says besides: the call it is made within, whether it is a stream's, and
// what cfg has for it. It returns nil if that is nothing.
func (e *enclosure) meta(cfg *callConfig, stream *codec.Meta) *codec.Meta {
	m := stream
	switch {
	case m != nil:
	case e == nil && len(cfg.key) == 0 && len(cfg.trace) == 0:
		return nil
	default:
		m = new(codec.Meta)
	}
	m.Key = cfg.key
	if e != nil {
		m.Nested, m.Within = true, e.by.id()
	}
	if len(cfg.trace) <= codec.MaxTrace {
		m.Trace = cfg.trace
	}
	return m
}

// nesting counts the calls of this side that are made within calls of the peer, and are not
// answered.
type nesting struct {
	calls, room int // how many the peer runs, and what they may cost; 0: any number; fixed

	mu    sync.Mutex
	made  int // guarded by mu, as all below
	bytes int // what they cost the peer
}

// enter lets a call go out at once, or says that there is no room for it.
func (n *nesting) enter(p *permit) *Abort {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case p.nest.depth > deepest:
		return neverSent(codec.ErrOverloaded.Withf("the call is the %dth within each other, and %d is the deepest", p.nest.depth, deepest))
	case n.room > 0 && p.cost > int64(n.room):
		return neverSent(codec.ErrTooLarge.Withf("the call costs %d bytes, and the peer has room for %d within calls", p.cost, n.room))
	case n.calls > 0 && n.made >= n.calls:
		return neverSent(codec.ErrOverloaded.Withf("%d calls are made within calls, and the peer runs no more", n.made))
	case n.room > 0 && n.bytes+int(p.cost) > n.room:
		return neverSent(codec.ErrOverloaded.Withf("calls within calls hold %d bytes, and the peer has room for %d", n.bytes, n.room))
	}
	n.made++
	n.bytes += int(p.cost)
	return nil
}

// leave says that a call is over.
func (n *nesting) leave(p *permit) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made--
	n.bytes -= int(p.cost)
}

// reserve bounds how many calls within calls a node runs for all its peers together. One owner may
// have as many as are left, so that there is always something left for another (dynamic thresholds,
// as for windows).
type reserve struct {
	owners *owners // fixed, as most
	most   int64
	held   atomic.Int64
}

// enter takes a place for a call of w, or reports that there is none.
func (r *reserve) enter(w *owner) bool {
	own := w.nested.Add(1)
	if own+r.held.Add(1) <= r.most {
		return true
	}
	r.leave(w)
	return false
}

// leave gives a place back. An owner with places is known as long as it has them.
func (r *reserve) leave(w *owner) {
	r.held.Add(-1)
	if w.nested.Add(-1) == 0 {
		r.owners.forget(w)
	}
}
