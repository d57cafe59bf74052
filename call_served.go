package asterisque

import (
	"bytes"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/priority"
)

// served is a call that the peer made: the endpoint of its pipe on this side, and at the same
// time the context of its handler, so that a call costs one object.
//
// As a context it makes its channel and its timer only for a handler that asks for them.
type served struct {
	port
	work    task
	handler *handler      // fixed, as expires
	expires time.Duration // when its time is up, by the node's clock; 0: never
	params  []byte        // the handler's from the moment it runs
	rare    *rareParts    // what few calls have; nil without
	within  *outer        // the call of this side that it is made within; mostly nil; fixed

	mu    sync.Mutex
	watch *watch // guarded by mu; nil until it has ended, or somebody wants to be told
}

// A call and what most of its kind have besides are one object.
type (
	unaryCall struct {
		served
		// parameters, if they fit; with them the object fills what is allocated for it
		small [64]byte
	}
	pipeCall struct {
		served
		whole pipe.Pipe // what port.pipe points to
	}
)

// newServed copies what it needs of m, whose slices are valid only for the moment. within is the
// call from this side that it is made within, or nil.
func newServed(x *exchange, m *message.Open, h *handler, within *outer) (c *served) {
	p := min(priority.Priority(m.Priority), x.serving.highest)
	if h.blocks {
		call := new(pipeCall)
		c = &call.served
		c.pipe = &call.whole
		(*piping.End)(c.pipe).Init(piping.Config{
			Function: m.Function, Priority: p, Port: c, Terms: &x.terms, SendLimit: sendLimit(&x.terms, m.Meta.Window), Granted: earlyLimit(&x.terms),
			Unary: !m.Meta.Stream, Lasting: m.Meta.TTL == 0,
		})
		if m.Meta.Stream && x.terms.PeerEarly < m.Meta.Window {
			x.watchIdle()
		}
	} else {
		call := new(unaryCall)
		c = &call.served
		c.params = call.small[:0]
	}
	c.x, c.flow = x, outbox.AcceptedFlow(p, m.Pipe)
	c.handler, c.within = h, within
	c.work = task{size: uint32(len(m.Params)), priority: p, nested: within != nil, blocks: h.blocks, windowed: m.Meta.Stream}
	if len(m.Meta.Key) > 0 {
		c.makeRare().key = bytes.Clone(m.Meta.Key)
	}
	c.takeParams(m.Params)
	if m.Meta.Strings > 0 {
		c.makeRare().strings = uint32(m.Meta.Strings)
	}
	if len(m.Meta.Metadata) > 0 {
		c.makeRare().metadata = string(m.Meta.Metadata)
	}
	if m.Meta.TTL > 0 {
		c.expires = x.common.now() + time.Duration(m.Meta.TTL)*time.Millisecond
	}
	if h.meter.arrived() {
		c.makeRare().arrived = x.common.now()
	}
	if len(m.Meta.Trace) > 0 && c.intercepted() {
		c.makeRare().trace = bytes.Clone(m.Meta.Trace)
	}
	return c
}

// earlyLimit returns what a peer may send at first on a stream that it opens.
func earlyLimit(t *piping.Terms) uint64 {
	if t.Room == nil {
		return piping.Unlimited
	}
	return t.Early
}

// sendLimit returns what this side may send at first on a stream whose Open announces a window. Of
// a peer that has no windows it says nothing, whatever it is.
func sendLimit(t *piping.Terms, announced uint64) uint64 {
	if t.PeerEarly == 0 || announced >= message.MaxPipe {
		return piping.Unlimited
	}
	return announced
}

// takeParams copies params to where c.params has room for them, or to new memory. What the handler
// only borrows stays in the memory in which it came, if it can, or is copied to a buffer.
func (c *served) takeParams(params []byte) {
	if own, mem := c.borrowed(params); mem != nil {
		c.params, c.makeRare().params, c.makeRare().kept = own, mem, mem.Held()
		return
	}
	if len(params) > cap(c.params) {
		c.params = nil // to grow it would take more than there is need of
	}
	c.params = append(c.params, params...)
}

// borrowed returns params in a buffer, and nil if the handler does not only borrow them, a
// repetition of the call may need them, or there is no buffer of about their size.
func (c *served) borrowed(params []byte) (own []byte, mem *buffer.Buffer) {
	lends := c.handler.borrows || c.handler.params != nil && c.x.lender == nil
	if !lends || !buffer.Snug(len(params)) || c.rare != nil && c.rare.key != nil {
		return nil, nil
	}
	own = params
	if mem = c.x.carrier.Keep(params); mem == nil {
		mem = buffer.Take(len(params))
		own = mem.B[:copy(mem.B, params)]
	}
	return own[:len(own):len(own)], mem
}

// freeParams is called when nobody needs the parameters any more.
func (c *served) freeParams() {
	c.params = nil
	if c.rare != nil && c.rare.params != nil {
		c.rare.params.Release()
		c.rare.params = nil
	}
}

// function returns the number of the function that is called. One handler may serve several, of
// which then the pipe knows.
func (c *served) function() uint16 {
	if c.pipe != nil {
		return c.pipe.Function()
	}
	return c.handler.number
}

// timed reports whether the statistics want to know how long the call waits and runs.
func (c *served) timed() bool { return c.rare != nil && c.rare.arrived > 0 }

// intercepted reports whether interceptors stand around the handler.
func (c *served) intercepted() bool { return c.x.common.inward != nil || c.handler.around != nil }

// makeRare returns the rare parts of c, which it makes if there are none.
func (c *served) makeRare() *rareParts {
	if c.rare == nil {
		c.rare = new(rareParts)
	}
	return c.rare
}

// shares reports whether the result of c is in memory that does not change.
func (c *served) shares() bool { return c.rare != nil && c.rare.durable.shared }

// firstOf returns the answer that c is the first call of, or nil.
func (c *served) firstOf() *durableAnswer {
	if c.rare == nil {
		return nil
	}
	return c.rare.durable.first
}
