package call

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/dispatch"
)

// A handler may not return: if it panics, its call fails; if it ends its goroutine, the deferred
// functions here answer the call, and another goroutine takes over: see workers and package
// carrier.

// Run runs the handler and answers.
func (c *Inbound) Run(k *dispatch.Workspace) {
	defer c.afterRun(k)

	if err := c.Err(); err != nil { // canceled, or expired, while it waited
		c.leaveNested()
		c.Refuse(codec.AbortOf(err))
		return
	}
	if m := c.firstOf(); m != nil {
		c.x.durable().Start(m)
	}
	var began time.Duration
	if c.timed() {
		began = c.x.common.Now()
		waited, meter := began-c.extras.arrived, c.Handler.Meter
		c.x.Dispatcher().NoteWait(waited)
		meter.Queued.Add(waited)
	}
	c.work.Serving = true
	result, err := c.serve(k)
	var a *codec.Abort
	if err != nil {
		a = c.failed(err)
	}
	c.work.Serving = false
	if c.timed() {
		meter := c.Handler.Meter
		meter.Ran.Add(c.x.common.Now() - began)
	}
	c.leaveNested()
	c.answer(result, a)
	if cap(k.Result) > MaxKeptResult {
		k.Result = nil
	}
}

// leaveNested releases the place of a nested call. It is called before the answer is put, as the
// receiver of the answer may make the next call at once.
func (c *Inbound) leaveNested() {
	if c.work.Nested && !c.work.ByReader {
		c.x.Dispatcher().Return(c.Cost(), true)
	}
}

// serve calls the handler through its interceptors.
func (c *Inbound) serve(k *dispatch.Workspace) (result []byte, err error) {
	if c.intercepted() {
		return c.x.common.Handle(c, k)
	}
	return c.Invoke(c, c, k)
}

// Invoke calls the handler, for which the call is as, and converts a panic into an error.
func (c *Inbound) Invoke(ctx context.Context, as HandlerCall, k *dispatch.Workspace) (result []byte, err error) {
	returned := false
	defer func() {
		if !returned {
			result, err = nil, c.misbehaved(recover())
		}
	}()
	result, err = c.Handler.Serve(ctx, as, k)
	returned = true
	return result, err
}

// afterRun is deferred while c is run.
func (c *Inbound) afterRun(k *dispatch.Workspace) {
	if c.work.Serving {
		c.answerLost(c.panicked("ended its goroutine"))
	}
	c.freeParams() // not earlier: the result may be a part of them
}

// answerLost answers c at the end of its goroutine.
func (c *Inbound) answerLost(a *codec.Abort) {
	c.work.Serving = false
	c.leaveNested()
	c.answer(nil, a)
}
