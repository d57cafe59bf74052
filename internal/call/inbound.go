package call

import (
	"bytes"
	"log/slog"
	"time"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/idempotency"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/priority"
)

// Inbound is a call of the peer: the endpoint of its pipe on this side, and also the context of
// its handler, so that a call costs one object.
//
// As a context it makes its channel and its timer only on demand.
type Inbound struct {
	transport callTransport
	work      dispatch.Task
	Handler   *Handler        // fixed, as expires
	expires   time.Duration   // expiry by the node's clock; 0: never
	params    []byte          // owned by the handler once it runs
	extras    *extras         // optional state; nil without
	parent    *outboundParent // the call of this side around it; mostly nil; fixed

	ending callEnd // locks itself
}

// A call and the optional state of most calls of its kind are one object.
type (
	unaryCall struct {
		Inbound
		// parameters, if they fit; they fill the allocation of the object
		small [64]byte
	}
	pipeCall struct {
		Inbound
		whole pipe.Pipe // target of callTransport.pipe
	}
)

// newInboundCall copies the needed parts of m. The slices of m are valid only for the moment.
// within is the call from this side around it, or nil. initial is the room of its extra credit,
// which the call releases.
func newInboundCall(x *Calls, m *message.Open, h *Handler, within *outboundParent, initial flow.Window) (c *Inbound) {
	p := min(priority.Priority(m.Priority), x.serving.highest)
	if h.Blocks {
		call := new(pipeCall)
		c = &call.Inbound
		c.transport.pipe = &call.whole
		(*piping.End)(c.transport.pipe).Init(piping.Config{
			Function: m.Function, Priority: p, Port: inboundPort{c}, Terms: &x.out.terms, SendLimit: initialSendLimit(&x.out.terms, m.Meta.Window), Granted: earlyLimit(&x.out.terms, initial), Hold: initial,
			Unary: !m.Meta.Stream, Lasting: m.Meta.TTL == 0,
		})
		if m.Meta.Stream && x.out.terms.PeerEarly < m.Meta.Window {
			x.watchIdle()
		}
	} else {
		call := new(unaryCall)
		c = &call.Inbound
		c.params = call.small[:0]
		x.out.dropHold(&initial)
	}
	c.transport.x, c.transport.flow = x, outbox.AcceptedFlow(p, m.Pipe)
	c.Handler, c.parent = h, within
	c.work = dispatch.Task{Size: uint32(len(m.Params)), Priority: p, Nested: within != nil, Blocks: h.Blocks, Windowed: m.Meta.Stream}
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
		c.expires = expiry(x.clock(), time.Duration(m.Meta.TTL)*time.Millisecond)
	}
	if h.Meter.arrived() {
		c.makeRare().arrived = x.clock().Now()
	}
	if len(m.Meta.Trace) > 0 && c.intercepted() {
		c.makeRare().trace = bytes.Clone(m.Meta.Trace)
	}
	return c
}

// calls returns the calls of the session.
func (c *Inbound) calls() *Calls { return c.transport.x }

// earlyLimit returns the initial send limit of a peer on a stream that it opens, with its extra
// credit.
func earlyLimit(t *piping.Terms, initial flow.Window) uint64 {
	if t.Budget == nil {
		return piping.Unlimited
	}
	return uint64(t.Early) + initial.Bytes()
}

// initialSendLimit returns the initial send limit of this side on a stream with a window announced
// by its Open. The announcement of a peer without windows has no meaning.
func initialSendLimit(t *piping.Terms, announced uint64) uint64 {
	if t.PeerEarly == 0 || announced >= message.MaxPipe {
		return piping.Unlimited
	}
	return announced
}

// takeParams copies params to c.params, if its capacity is sufficient, or to new memory. Parameters
// that the handler only borrows stay in their memory, if possible, or are copied to a buffer.
func (c *Inbound) takeParams(params []byte) {
	if own, mem := c.borrowed(params); mem != nil {
		c.params, c.makeRare().params = own, mem
		return
	}
	if len(params) > cap(c.params) {
		c.params = nil // growing it would allocate more than necessary
	}
	c.params = append(c.params, params...)
}

// borrowed returns params in a buffer. It returns nil if the handler keeps its parameters, a
// repetition of the call may need them, or there is no buffer of about their size.
func (c *Inbound) borrowed(params []byte) (own []byte, mem *buffer.Buffer) {
	lends := c.Handler.Borrows || c.Handler.Params != nil && c.calls().Coder.Lender == nil
	if !lends || !buffer.Snug(len(params)) || c.extras != nil && c.extras.key != nil {
		return nil, nil
	}
	own = params
	if mem = c.calls().Carrier.Keep(params); mem == nil {
		mem = buffer.Take(len(params))
		own = mem.B[:copy(mem.B, params)]
	}
	return own[:len(own):len(own)], mem
}

// freeParams is called when the parameters are no longer needed.
func (c *Inbound) freeParams() {
	c.params = nil
	if c.extras != nil && c.extras.params != nil {
		c.extras.params.Release()
		c.extras.params = nil
	}
}

// Function returns the number of the called function. One handler may serve several functions, and
// then the pipe has the number.
func (c *Inbound) Function() uint16 {
	if c.transport.pipe != nil {
		return c.transport.pipe.Function()
	}
	return c.Handler.Number
}

// intercepted reports whether the handler has interceptors.
func (c *Inbound) intercepted() bool {
	return c.calls().out.common.Intercepted || c.Handler.Intercepted
}

// timed reports whether the statistics include the times of the call.
func (e *extras) timed() bool { return e != nil && e.arrived > 0 }

// first returns the durable answer of which the call is the first one, or nil.
func (e *extras) first() *idempotency.Answer {
	if e == nil {
		return nil
	}
	return e.durable.First
}

// heldMetadata returns the bytes of the encoded metadata.
func (e *extras) heldMetadata() int {
	if e == nil {
		return 0
	}
	return len(e.metadata)
}

// makeRare returns the optional state of c, which it makes if necessary.
func (c *Inbound) makeRare() *extras {
	if c.extras == nil {
		c.extras = new(extras)
	}
	return c.extras
}

// shares reports whether the memory of c's result does not change.
func (r response) shares() bool { return r.c.extras != nil && r.c.extras.durable.Shared }

// extras is the optional state of few calls of the peer.
type extras struct {
	turn     *dispatch.Turn   // nil if its function has no keys
	trace    []byte           // the peer's trace context
	key      []byte           // of a durable call
	metadata string           // of the call, encoded
	durable  idempotency.Role // of a call that has a key
	params   *buffer.Buffer   // memory of the parameters, if the handler only borrows them
	arrived  time.Duration    // by the node's clock; 0 if this call is not timed

	// These count in the cost of the Open: bytes of the strings of its meta, and bytes of its
	// parameters that count no longer.
	strings, returned uint32
}

// serving is the common state of the peer's calls.
type serving struct {
	private bool // keeps the texts of errors on this side; fixed

	// cap of the peer's priorities; owned by the reader, as the next four
	highest   priority.Priority
	granted   uint8               // bits of the functions permitted by its Grant; see Handler
	openRate  rateLimit           // of calls that the peer cancels
	functions *Functions          // offered to the peer
	inline    *dispatch.Workspace // nil until there is an inline call

	dispatcher dispatch.Dispatcher // locks itself
}

// find returns the handler of a function, or nil if there is none for this peer.
func (s *serving) find(function uint16) *Handler {
	h := s.functions.find(function)
	if h != nil && h.Grants&^s.granted != 0 {
		return nil
	}
	return h
}

// Metadata returns the metadata of c, decoded again each time, or nil.
func (c *Inbound) Metadata() map[string]any {
	if c.extras == nil || c.extras.metadata == "" {
		return nil
	}
	// checked on arrival
	m, _ := message.ParseMetadata([]byte(c.extras.metadata))
	return m
}

// Key returns the idempotency key of a durable call, or nil.
func (c *Inbound) Key() []byte {
	if c.extras == nil {
		return nil
	}
	return c.extras.key
}

// Trace returns the trace context of the peer, or nil.
func (c *Inbound) Trace() []byte {
	if c.extras == nil {
		return nil
	}
	return c.extras.trace
}

// Priority returns the priority of the call.
func (c *Inbound) Priority() priority.Priority { return c.work.Priority }

// ForgetAnswer makes an error of the call be forgotten, if the call is durable.
func (c *Inbound) ForgetAnswer() {
	if c.Key() != nil {
		c.calls().durable().ForgetAnswer(durableCall{c})
	}
}

// Session returns the session of the call.
func (c *Inbound) Session() slog.LogValuer { return c.calls().Coder.Session }

// SetParams replaces the parameters, before the handler runs.
func (c *Inbound) SetParams(params []byte) { c.params = params }
