package call

import (
	"sync"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/aborts"
)

// A handler may call its caller back, the handler of that call may call again, and so on: nested
// calls. The outer calls wait for the inner ones, so an inner call waits for nothing that an outer
// one may hold: no budget, no window, no worker. Nested calls have a budget of their own, in bytes
// and in number, and are rejected beyond it.

// deepest bounds the depth of nested calls.
const deepest = 64

// inboundParent is a running call of the peer, as the parent of calls that the handler makes. See
// carriedBy for the lookup.
type inboundParent interface {
	id() uint64            // of its pipe
	nesting() *nestedCalls // counts nested calls to its caller
	depth() int            // number of calls around it
	callsBack() error      // error if the handler cannot call its caller back
}

// outboundParent is a call from this side, as the parent of nested calls of the peer.
type outboundParent struct {
	by       inboundParent // the call whose handler made it; nil: none; fixed, as all
	function uint16
	depth    int32 // number of calls around it
}

// outerOf returns a call from this side as a parent: known, or if that is nil a call that no
// handler made.
func outerOf(known *outboundParent, function uint16) *outboundParent {
	if known == nil {
		return &outboundParent{function: function}
	}
	return known
}

// meta returns the optional part of an Open: the parent call, the properties of a stream, the
// metadata, and the key and the trace of cfg. It returns nil if there are none.
func (r *outboundParent) meta(cfg *Options, metadata []byte, stream *message.Meta) *message.Meta {
	m := stream
	switch {
	case m != nil:
	case r == nil && len(cfg.Key) == 0 && len(cfg.Trace) == 0 && metadata == nil:
		return nil
	default:
		m = new(message.Meta)
	}
	m.Key, m.Metadata = cfg.Key, metadata
	if r != nil {
		m.Nested, m.Within = true, r.by.id()
	}
	if len(cfg.Trace) <= message.MaxTrace {
		m.Trace = cfg.Trace
	}
	return m
}

// nestedCalls counts the unanswered calls of this side that are nested within calls of the peer.
type nestedCalls struct {
	calls, room int32 // number that the peer runs, and their cost limit; 0: no limit; fixed

	mu   sync.Mutex
	made int32 // guarded by mu, as all below
	cost int64 // their cost at the peer
}

// reserve admits a nested call at once, or returns an error if the budget is exhausted.
func (n *nestedCalls) reserve(depth int32, cost int64) *codec.Abort {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case depth > deepest:
		return aborts.NeverSent(codec.ErrOverloaded.Withf("the call is nested %d deep, and %d is the limit", depth, deepest))
	case n.room > 0 && cost > int64(n.room):
		return aborts.NeverSent(codec.ErrTooLarge.Withf("the call costs %d bytes, and the peer has room for %d bytes of nested calls", cost, n.room))
	case n.calls > 0 && n.made >= n.calls:
		return aborts.NeverSent(codec.ErrOverloaded.Withf("%d nested calls are made, and the peer runs no more", n.made))
	case n.room > 0 && n.cost+cost > int64(n.room):
		return aborts.NeverSent(codec.ErrOverloaded.Withf("nested calls hold %d bytes, and the peer has room for %d", n.cost, n.room))
	}
	n.made++
	n.cost += cost
	return nil
}

// giveBack is called when a call has ended.
func (n *nestedCalls) giveBack(cost int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made--
	n.cost -= cost
}
