package asterisque

import (
	"sync"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
)

// A handler may call its caller back, and that one may call again, and so on: calls within calls.
// The outer ones wait for the inner ones, so these wait for nothing that an outer one may hold: no
// room, no window, no worker. They have room of their own, in bytes and in number, and are refused
// beyond it.

// deepest is how deep calls may be within calls.
const deepest = 64

// handled is a call of the peer whose handler runs, as the calls that this handler makes see it.
// See carriedBy for how they find it.
type handled interface {
	id() uint64        // of its pipe
	nesting() *nesting // counts the calls that are made to its caller
	depth() int        // within how many calls it is
	callsBack() error  // nil, or why its handler cannot call its caller
}

// outer is a call from this side, as the calls of the peer that are made within it see it.
type outer struct {
	by       handled // the call whose handler made it; nil: no handler did; fixed, as all
	function uint16
	depth    int32 // within how many calls it is
}

// outerOf returns what a call from this side is to those within it: known, or if that is nil a call
// that no handler made.
func outerOf(known *outer, function uint16) *outer {
	if known == nil {
		return &outer{function: function}
	}
	return known
}

// meta returns what an Open says besides: the call it is made within, whether it is a stream's,
// metadata, and what cfg has for it. It returns nil if that is nothing.
func (r *outer) meta(cfg *callConfig, metadata []byte, stream *message.Meta) *message.Meta {
	m := stream
	switch {
	case m != nil:
	case r == nil && len(cfg.key) == 0 && len(cfg.trace) == 0 && metadata == nil:
		return nil
	default:
		m = new(message.Meta)
	}
	m.Key, m.Metadata = cfg.key, metadata
	if r != nil {
		m.Nested, m.Within = true, r.by.id()
	}
	if len(cfg.trace) <= message.MaxTrace {
		m.Trace = cfg.trace
	}
	return m
}

// nesting counts the calls of this side that are made within calls of the peer, and are not
// answered.
type nesting struct {
	calls, room int32 // how many the peer runs, and what they may cost; 0: any number; fixed

	mu   sync.Mutex
	made int32 // guarded by mu, as all below
	cost int64 // what they cost the peer
}

// reserve lets a call go out at once, or says that there is no room for it.
func (n *nesting) reserve(depth int32, cost int64) *Abort {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case depth > deepest:
		return neverSent(codec.ErrOverloaded.Withf("the call is the %dth within each other, and %d is the deepest", depth, deepest))
	case n.room > 0 && cost > int64(n.room):
		return neverSent(codec.ErrTooLarge.Withf("the call costs %d bytes, and the peer has room for %d within calls", cost, n.room))
	case n.calls > 0 && n.made >= n.calls:
		return neverSent(codec.ErrOverloaded.Withf("%d calls are made within calls, and the peer runs no more", n.made))
	case n.room > 0 && n.cost+cost > int64(n.room):
		return neverSent(codec.ErrOverloaded.Withf("calls within calls hold %d bytes, and the peer has room for %d", n.cost, n.room))
	}
	n.made++
	n.cost += cost
	return nil
}

// giveBack is called when a call is over.
func (n *nesting) giveBack(cost int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made--
	n.cost -= cost
}
