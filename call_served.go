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
			Function: m.Function, Priority: p, Port: c, Terms: &x.terms, SendLimit: limitOf(m.Meta.Window), Granted: earlyLimit(&x.terms),
			Unary: !m.Meta.Stream, Lasting: m.Meta.TTL == 0,
		})
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
	if m.Meta.TTL > 0 {
		c.expires = x.common.now() + time.Duration(m.Meta.TTL)*time.Millisecond
	}
	if h.meter.arrived() {
		c.makeRare().arrived = x.common.now()
	}
	if len(m.Meta.Trace) > 0 && x.serving.traceServed != nil {
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

// limitOf returns the limit that a peer has announced.
func limitOf(announced uint64) uint64 {
	if announced >= message.MaxPipe {
		return piping.Unlimited
	}
	return announced
}

// takeParams copies params to where c.params has room for them, or to new memory. What the handler
// only borrows stays in the memory in which it came, if it can, and if no repetition of the call
// may need it.
func (c *served) takeParams(params []byte) {
	if len(params) >= carrier.LeastKept && (c.rare == nil || c.rare.key == nil) && (c.handler.borrows || c.handler.params != nil && c.x.lender == nil) {
		if mem := c.x.carrier.Keep(params); mem != nil {
			c.params, c.makeRare().params, c.makeRare().kept = params[:len(params):len(params)], mem, mem.Held()
			return
		}
	}
	if len(params) > cap(c.params) {
		c.params = nil // to grow it would take more than there is need of
	}
	c.params = append(c.params, params...)
}

// freeParams is called when nobody needs the parameters any more.
func (c *served) freeParams() {
	c.params = nil
	if c.rare != nil && c.rare.params != nil {
		c.rare.params.Release()
		c.rare.params = nil
	}
}

// run runs the handler and answers.
func (c *served) run(k *workspace) {
	defer c.afterRun(k)

	if err := c.Err(); err != nil { // given up, or expired, while it waited
		c.leaveNested()
		c.refuse(codec.AbortOf(err))
		return
	}
	if m := c.firstOf(); m != nil {
		c.x.serving.calls.staff.durable.begin(m)
	}
	var began time.Duration
	if c.timed() {
		began = c.x.common.now()
		c.x.serving.calls.lastWait.Store(int64(began - c.rare.arrived))
		c.handler.meter.queued.Add(began - c.rare.arrived)
	}
	c.work.serving = true
	result, err := c.serve(k)
	var a *Abort
	if err != nil {
		a = c.failed(err)
	}
	c.work.serving = false
	if c.timed() {
		c.handler.meter.ran.Add(c.x.common.now() - began)
	}
	c.leaveNested()
	c.answer(result, a)
	if cap(k.result) > keepResult {
		k.result = nil
	}
}

// leaveNested gives back the place of a call within another one. It is called before the answer is
// put, whose receiver may make the next one at once.
func (c *served) leaveNested() {
	if c.work.nested && !c.work.byReader {
		c.x.serving.calls.giveBack(c.cost(), true)
	}
}

// serve calls the handler, and tells the tracer.
func (c *served) serve(k *workspace) (result []byte, err error) {
	if c.x.serving.traceServed == nil {
		return c.invoke(c, k)
	}
	return c.serveTraced(k)
}

// invoke calls the handler and turns a panic into an error.
func (c *served) invoke(ctx context.Context, k *workspace) (result []byte, err error) {
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
func (c *served) timed() bool { return c.rare != nil && c.rare.arrived > 0 }

// answer ends the call with result or a. It does nothing if the call is over.
func (c *served) answer(result []byte, a *Abort) {
	c.handler.meter.ended(a)
	if m := c.firstOf(); m != nil {
		if a != nil && a.Ran == codec.Refused {
			// it is the answer to the key: another attempt would get the same
			a.Ran = codec.MaybeRan
		}
		c.x.serving.calls.staff.durable.answer(m, result, a)
	}
	c.reply(result, a)
}

// reply sends the answer.
func (c *served) reply(result []byte, a *Abort) {
	switch {
	case c.pipe == nil:
		c.Close(result, a)
	case a == nil:
		(*piping.End)(c.pipe).Close(result)
	default:
		c.pipe.Abort(c.x.sent(a)) // it keeps that until the Close has left
	}
}

// Close implements piping.Port.
func (c *served) Close(result []byte, abort *Abort) {
	if c.x.serving.private && c.pipe != nil && abort != nil && abort.Cause != nil {
		// the handler has aborted the pipe
		abort = c.toldAborting(abort)
	}
	if abort != nil {
		c.x.carrier.Cancel(&c.flow, givenUp(abort)) // it overtakes Blocks that wait
	}
	by := byWorker
	switch refused := abort != nil && abort.Ran == codec.Refused; {
	case refused && (abort.Code == codec.WindowViolation || c.work.nested && abort.Code == codec.Overloaded):
		by = beyond
	case c.work.byReader, refused:
		by = byReader
	case c.work.nested:
		by = byLent
	}
	c.x.sendAnswer(c, c.work.priority, result, abort, by)
	c.end(canceled)
}

// refuse ends a call whose handler will not run.
func (c *served) refuse(a *Abort) {
	c.handler.meter.ended(a)
	if m := c.firstOf(); m != nil {
		c.x.serving.calls.staff.durable.handOn(m)
	}
	r := *c.x.sent(a)
	r.Ran = codec.Refused
	if c.pipe != nil {
		// Blocks may have come already: nobody will take them
		(*piping.End)(c.pipe).CloseArrived(nil, &r)
	}
	c.Close(nil, &r)
}

// block implements endpoint.
func (c *served) block(b message.Block) error {
	switch {
	case c.pipe != nil:
		return c.deliver(c.pipe, b)
	case !c.work.windowed:
		return violation("Block for pipe %d, which is that of a unary call", b.Pipe)
	case !b.End && !c.x.foreign():
		c.answer(nil, c.failed(codec.ErrBadParams.Withf("function %d %q takes no Blocks", c.handler.number, c.handler.name)))
	}
	return nil
}

// closed implements endpoint: the caller gave up.
func (c *served) closed(m message.Close) {
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
func (c *served) fail(a *Abort) {
	if c.rare != nil && c.rare.key != nil {
		c.endAwaiting()
	}
	before := c.x.serving.calls.withdraw(c)
	if before.waits() {
		c.handler.meter.ended(a)
	}
	if c.pipe != nil {
		(*piping.End)(c.pipe).CloseArrived(nil, a)
	}
	if before == taskArriving {
		c.end(canceled) // the reader sees to the rest
		return
	}
	if m := c.firstOf(); m != nil {
		if before.waits() {
			c.x.serving.calls.staff.durable.handOn(m)
		} else if c.x.ctx.Err() != nil && !c.work.nested {
			// the session has ended, and the answer is for the next one
			c.x.serving.calls.staff.durable.runOn(m)
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
func (c *served) outer() *outer { return nil }

// nesting implements handled.
func (c *served) nesting() *nesting { return &c.x.nesting }

// depth implements handled.
func (c *served) depth() int {
	if c.within == nil {
		return 0
	}
	return int(c.within.depth) + 1
}

// callsBack implements handled.
func (c *served) callsBack() error {
	if c.handler.inline {
		return codec.ErrUnavailable.Withf("the handler of function %d %q runs inline, so that the answer could not be read: register it without WithInline", c.handler.number, c.handler.name)
	}
	return nil
}

// untyped implements endpoint.
func (c *served) untyped() *pipe.Pipe { return c.pipe }

// info implements endpoint.
func (c *served) info() PipeInfo {
	return PipeInfo{Pipe: c.id(), Function: c.handler.number, Name: c.handler.name, Priority: c.work.priority}
}

// queued implements endpoint.
func (c *served) queued() bool { return c.x.serving.calls.waits(c) }
