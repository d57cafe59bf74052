package asterisque

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/codec"
)

// What becomes of a call whose handler does not return: it panics, and its call fails; or it ends
// its goroutine, and then what is deferred here answers the call, and another goroutine takes the
// place of the one that is gone: see workers and package carrier.

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

// afterRun is deferred while c is run.
func (c *served) afterRun(k *workspace) {
	if c.work.serving {
		c.answerLost(k, nil, c.panicked("ended its goroutine"))
	}
	c.freeParams() // not earlier: the result may be a part of them
}

// answerLost answers c, whose goroutine is being ended.
func (c *served) answerLost(k *workspace, result []byte, err error) {
	var a *Abort
	if err != nil {
		a = c.failed(err) // which may end the goroutine as well, and then afterRun answers
	}
	c.work.serving = false
	c.leaveNested()
	c.answer(result, a)
}

// serveTraced is serve with a tracer, which is told the outcome also when the goroutine is ended.
func (c *served) serveTraced(k *workspace) (result []byte, err error) {
	ctx, done := c.trace()
	err = errHandlerLost // unless it returns
	defer func() {
		told := false
		defer func() {
			if !told && err != errHandlerLost { // it is the tracer that ends the goroutine
				c.answerLost(k, result, err)
			}
		}()
		c.guard("tracer", func() { done(err) })
		told = true
	}()
	result, err = c.invoke(ctx, k)
	return result, err
}

var errHandlerLost error = codec.ErrPanicked.Withf("the handler ended its goroutine")

// trace tells the tracer that the handler is about to run.
func (c *served) trace() (ctx context.Context, done func(error)) {
	var trace []byte
	if c.rare != nil {
		trace = c.rare.trace
	}
	c.guard("tracer", func() { ctx, done = c.x.serving.traceServed(c, c.handler.number, c.handler.name, trace) })
	if ctx == nil || done == nil { // it panicked
		return c, func(error) {}
	}
	return ctx, done
}
