package asterisque

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/priority"
)

// incoming is a call that the peer made: the endpoint of its pipe on this side, and at the same
// time the context of its handler, so that a call costs one object.
//
// As a context it makes its channel and its timer only for a handler that asks for them.
type incoming struct {
	port
	handler  *handler
	function uint16            // these are fixed
	priority priority.Priority //
	state    place             // guarded by the lock of the session's dispatcher, as gated
	gated    bool              // it holds a place at the gate of its function
	urged    bool              // a call within another one waits for its end; guarded as state
	stream   bool              // its Open has paid for the first Blocks; fixed
	// it is run, and answered, by the reader: it is inline, and carries no Blocks; fixed
	onReader bool
	ended    ending // guarded by mu; how the context ended
	// what its parameters become when they are decoded; fixed once it waits
	becomes rough
	size    uint32        // bytes of its parameters; fixed
	expires time.Duration // when its time is up, by the node's clock; 0: never; fixed
	params  []byte        // the handler's from the moment it runs
	rare    *extra        // what few calls have; nil without
	within  *outer        // the call of this side that it is made within; mostly nil; fixed

	mu    sync.Mutex
	watch *watch // guarded by mu; nil until somebody wants to be told
}

// A call and what most of its kind have besides are one object.
type (
	unaryCall struct {
		incoming
		// parameters, if they fit; with them the object fills what is allocated for it
		small [64]byte
	}
	pipeCall struct {
		incoming
		whole pipe.Pipe // what port.pipe points to
	}
)

// newIncoming copies what it needs of m, whose slices are valid only for the moment. within is the
// call from this side that it is made within, or nil.
func newIncoming(s *Session, m *message.Open, h *handler, within *outer) (c *incoming) {
	p := min(priority.Priority(m.Priority), s.highest)
	if h.blocks {
		call := new(pipeCall)
		c = &call.incoming
		c.pipe = &call.whole
		(*piping.End)(c.pipe).Init(piping.Config{
			Function: m.Function, Priority: p, Port: c, Terms: &s.terms, SendLimit: limitOf(m.Meta.Window), Granted: s.early(),
			Unary: !m.Meta.Stream, Lasting: m.Meta.TTL == 0,
		})
	} else {
		call := new(unaryCall)
		c = &call.incoming
		c.params = call.small[:0]
	}
	c.s, c.flow = s, outbox.AcceptedFlow(p, m.Pipe)
	c.handler, c.function, c.priority, c.within = h, m.Function, p, within
	c.stream, c.size = m.Meta.Stream, uint32(len(m.Params))
	if len(m.Meta.Key) > 0 {
		c.extra().key = bytes.Clone(m.Meta.Key)
	}
	c.takeParams(m.Params)
	if m.Meta.Strings > 0 {
		c.extra().strings = m.Meta.Strings
	}
	if m.Meta.TTL > 0 {
		c.expires = s.shared.now() + time.Duration(m.Meta.TTL)*time.Millisecond
	}
	if h.meter.arrived() {
		c.extra().arrived = s.shared.now()
	}
	if len(m.Meta.Trace) > 0 && s.cfg.tracer != nil {
		c.extra().trace = bytes.Clone(m.Meta.Trace)
	}
	return c
}

// takeParams copies params to where c.params has room for them, or to new memory. What the handler
// only borrows stays in the memory in which it came, if it can, and if no repetition of the call
// may need it.
func (c *incoming) takeParams(params []byte) {
	if len(params) >= carrier.LeastKept && (c.rare == nil || c.rare.key == nil) && (c.handler.borrows || c.handler.params != nil && c.s.lender == nil) {
		if mem := c.s.carrier.Keep(params); mem != nil {
			c.params, c.extra().params, c.extra().kept = params[:len(params):len(params)], mem, mem.Held()
			return
		}
	}
	if len(params) > cap(c.params) {
		c.params = nil // to grow it would take more than there is need of
	}
	c.params = append(c.params, params...)
}

// freeParams is called when nobody needs the parameters any more.
func (c *incoming) freeParams() {
	c.params = nil
	if c.rare != nil && c.rare.params != nil {
		c.rare.params.Release()
		c.rare.params = nil
	}
}

// run runs the handler and answers.
func (c *incoming) run(k *scratch) {
	defer c.afterRun(k)

	if err := c.Err(); err != nil { // given up, or expired, while it waited
		c.leaveNested()
		c.refuse(codec.AbortOf(err))
		return
	}
	if m := c.memory(); m != nil {
		c.s.shared.once.run(m)
	}
	var began time.Duration
	if c.timed() {
		began = c.s.shared.now()
		c.s.calls.lastWait.Store(int64(began - c.rare.arrived))
		c.handler.meter.queued.Add(began - c.rare.arrived)
	}
	k.serving = true
	result, err := c.serve(k)
	var a *Abort
	if err != nil {
		a = c.failed(err)
	}
	k.serving = false
	if c.timed() {
		c.handler.meter.ran.Add(c.s.shared.now() - began)
	}
	c.leaveNested()
	c.answer(result, a)
	if cap(k.result) > keepResult {
		k.result = nil
	}
}

// leaveNested gives back the place of a call within another one. It is called before the answer is
// put, whose receiver may make the next one at once.
func (c *incoming) leaveNested() {
	if c.nested() && !c.onReader {
		c.s.calls.giveBack(c.cost(), true)
	}
}

// serve calls the handler, and tells the tracer.
func (c *incoming) serve(k *scratch) (result []byte, err error) {
	if c.s.cfg.tracer == nil {
		return c.invoke(c, k)
	}
	return c.serveTraced(k)
}

// invoke calls the handler and turns a panic into an error.
func (c *incoming) invoke(ctx context.Context, k *scratch) (result []byte, err error) {
	returned := false
	defer func() {
		if !returned {
			result, err = nil, c.misbehaved(recover())
		}
	}()
	result, err = c.handler.serve(ctx, c, k)
	returned = true
	return result, err
}

// timed reports whether the statistics want to know how long the call waits and runs.
func (c *incoming) timed() bool { return c.rare != nil && c.rare.arrived > 0 }

// answer ends the call with result or a. It does nothing if the call is over.
func (c *incoming) answer(result []byte, a *Abort) {
	c.handler.meter.ended(a)
	if m := c.memory(); m != nil {
		if a != nil && a.Ran == codec.Refused {
			// it is the answer to the key: another attempt would get the same
			a.Ran = codec.MaybeRan
		}
		c.s.shared.once.answer(m, result, a)
	}
	c.reply(result, a)
}

// reply sends the answer.
func (c *incoming) reply(result []byte, a *Abort) {
	switch {
	case c.pipe == nil:
		c.Close(result, a)
	case a == nil:
		(*piping.End)(c.pipe).Close(result)
	default:
		c.pipe.Abort(c.s.sent(a)) // it keeps that until the Close has left
	}
}

func (c *incoming) memory() *memory {
	if c.rare == nil {
		return nil
	}
	return c.rare.memory
}

// Close implements piping.Port.
func (c *incoming) Close(result []byte, abort *Abort) {
	if c.s.cfg.private && c.pipe != nil && abort != nil && abort.Cause != nil {
		// the handler has aborted the pipe
		abort = c.toldAborting(abort)
	}
	if abort != nil {
		c.s.carrier.Cancel(&c.flow, givenUp(abort)) // it overtakes Blocks that wait
	}
	by := byWorker
	switch refused := abort != nil && abort.Ran == codec.Refused; {
	case refused && (abort.Code == codec.WindowViolation || c.nested() && abort.Code == codec.Overloaded):
		by = beyond
	case c.onReader, refused:
		by = byReader
	case c.nested():
		by = byLent
	}
	c.s.sendAnswer(c, c.priority, result, abort, by)
	c.end(canceled)
}

// refuse ends a call whose handler will not run.
func (c *incoming) refuse(a *Abort) {
	c.handler.meter.ended(a)
	if m := c.memory(); m != nil {
		c.s.shared.once.refuse(m)
	}
	r := *c.s.sent(a)
	r.Ran = codec.Refused
	if c.pipe != nil {
		// Blocks may have come already: nobody will take them
		(*piping.End)(c.pipe).CloseArrived(nil, &r)
	}
	c.Close(nil, &r)
}

// block implements endpoint.
func (c *incoming) block(b message.Block) error {
	switch {
	case c.pipe != nil:
		return c.deliver(c.pipe, b)
	case !c.stream:
		return violation("Block for pipe %d, which is that of a unary call", b.Pipe)
	case !b.End && !c.s.foreign():
		c.answer(nil, c.failed(codec.ErrBadParams.Withf("function %d %q takes no Blocks", c.function, c.handler.name)))
	}
	return nil
}

// taken notes that the Open waits no more.
func (c *incoming) taken() { c.s.inbound.Remove(1, c.held()) }

// closed implements endpoint: the caller gave up.
func (c *incoming) closed(m message.Close) {
	a := codec.ErrCanceled
	if m.Abort != nil {
		a = remote(m.Abort)
	}
	if c.pipe != nil {
		(*piping.End)(c.pipe).CloseArrived(nil, a)
	}
	c.closedBy(a)
	c.fail(a)
}

// fail implements endpoint.
func (c *incoming) fail(a *Abort) {
	if c.rare != nil && c.rare.key != nil {
		c.s.shared.once.leave(c)
	}
	before := c.s.calls.leave(c)
	if before.waits() {
		c.handler.meter.ended(a)
	}
	if c.pipe != nil {
		(*piping.End)(c.pipe).CloseArrived(nil, a)
	}
	if before == arrives {
		c.end(canceled) // the reader sees to the rest
		return
	}
	if m := c.memory(); m != nil {
		if before.waits() {
			c.s.shared.once.refuse(m)
		} else if c.s.ctx.Err() != nil && !c.nested() {
			c.s.shared.once.orphan(m) // the session has ended, and the answer is for the next one
			return
		}
	}
	if errors.Is(a, codec.ErrExpired) {
		c.end(expired)
	} else {
		c.end(canceled)
	}
}

// outer implements endpoint.
func (c *incoming) outer() *outer { return nil }

// back implements handled.
func (c *incoming) back() *outgoing { return &c.s.outgoing }

// depth implements handled.
func (c *incoming) depth() int {
	if c.within == nil {
		return 0
	}
	return int(c.within.depth) + 1
}

// callsBack implements handled.
func (c *incoming) callsBack() error {
	if c.handler.inline {
		return codec.ErrUnavailable.Withf("the handler of function %d %q runs inline, so that the answer could not be read: register it without WithInline", c.function, c.handler.name)
	}
	return nil
}

// untyped implements endpoint.
func (c *incoming) untyped() *pipe.Pipe { return c.pipe }

// info implements endpoint.
func (c *incoming) info() PipeInfo {
	return PipeInfo{Pipe: c.id(), Function: c.function, Name: c.handler.name, Priority: c.priority}
}

// queued implements endpoint.
func (c *incoming) queued() bool { return c.s.calls.queued(c) }
