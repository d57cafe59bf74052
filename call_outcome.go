package asterisque

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/guard"
)

// What becomes of a call whose handler does not return: it panics, and its call fails; or it ends
// its goroutine, and then what is deferred here answers the call, and another goroutine takes the
// place of the one that is gone: see workers and Session.runTo.

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

// misbehaved logs that the handler has not returned, and returns the error for it; v is as for the
// function of this name.
func (c *served) misbehaved(v any) *Abort {
	guard.Misbehaved(c.x.log, "handler", v, "function", c.handler.number, "name", c.handler.name)
	return c.panicked(guard.HowEnded(v))
}

// panicked returns the error for a handler that did not return.
func (c *served) panicked(how string) *Abort {
	return codec.ErrPanicked.Withf("the handler of function %d %q %s", c.handler.number, c.handler.name, how)
}

// failed returns err as the Abort of this call. If it tells how far another call got, which the
// handler made, that is not true of this one.
func (c *served) failed(err error) *Abort {
	of, ok := err.(*Abort)
	plain := false
	if !ok || of == nil { // its methods are the application's
		ok = c.guard("error of a handler", func() { of, plain = codec.AbortOf(err), isPlain(err) })
	}
	if !ok {
		of = c.panicked("returned an error that panicked")
	}
	a := *of
	if a.Remote || a.Ran != codec.Refused {
		a.Ran, a.Remote = codec.MaybeRan, false
	}
	if plain {
		return c.told(err, &a)
	}
	return &a
}

// guard calls f, a part of the application that belongs to the call.
func (c *served) guard(what string, f func()) (ok bool) {
	return guard.Run(c.x.log, what, f, "function", c.handler.number, "name", c.handler.name)
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
