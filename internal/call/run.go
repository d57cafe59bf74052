package call

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/internal/values"
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

// misbehaved logs that the handler has not returned, and returns the error for it; v is as for the
// function of this name.
func (c *Inbound) misbehaved(v any) *codec.Abort {
	guard.Misbehaved(c.x.Log, "handler", v, "function", c.Function(), "name", c.Handler.Name)
	return c.panicked(guard.HowEnded(v))
}

// panicked returns the error for a handler that did not return.
func (c *Inbound) panicked(how string) *codec.Abort {
	return codec.ErrPanicked.Withf("the handler of function %d %q %s", c.Function(), c.Handler.Name, how)
}

// failed returns err as the Abort of this call. The progress in an error of another call, which the
// handler made, does not apply to this one.
func (c *Inbound) failed(err error) *codec.Abort {
	of, ok := err.(*codec.Abort)
	plain := false
	if !ok || of == nil { // methods of err are the application's
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

// guard calls f, application code that belongs to the call.
func (c *Inbound) guard(what string, f func()) (ok bool) {
	return guard.Run(c.x.Log, what, f, "function", c.Function(), "name", c.Handler.Name)
}

// The text of an application's error may be confidential. For such an error the peer receives an
// id, with which a reader of the log finds the text.

// NewErrorID returns 8 random hexadecimal digits.
func NewErrorID() string {
	var id [4]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// told returns the error for the peer in place of err, which is plain, and the cause of a.
func (c *Inbound) told(err error, a *codec.Abort) *codec.Abort {
	if !c.x.serving.private {
		return a
	}
	id := NewErrorID()
	c.x.Log.Warn("handler failed", "id", id, "session", c.x.Session, "function", c.Function(), "name", c.Handler.Name, "error", err)
	b := *a
	b.Message, b.Cause = "internal error, id "+id, nil
	return &b
}

// toldAborting returns the error for the peer if the handler has aborted the pipe with a.
func (c *Inbound) toldAborting(a *codec.Abort) *codec.Abort {
	plain := true // default if a method of the application's error fails
	guard.Run(c.x.Log, "error of a handler", func() { plain = a.Cause.Error() == a.Message && isPlain(a.Cause) },
		"function", c.Function(), "name", c.Handler.Name)
	if plain {
		return c.told(a.Cause, a)
	}
	return a
}

// isPlain reports whether err is neither an Abort nor just the error of a context.
func isPlain(err error) bool {
	var a *codec.Abort
	return !errors.As(err, &a) && err != context.Canceled && err != context.DeadlineExceeded
}

// The view of a call for its handler: see HandlerCall.

// RawParams implements HandlerCall.
func (c *Inbound) RawParams() []byte { return c.params }

// Coder implements HandlerCall.
func (c *Inbound) Coder() *values.Coder { return &c.x.Coder }

// DecodedForKey implements HandlerCall.
func (c *Inbound) DecodedForKey() *any {
	if _, t := c.Turn(); t != nil {
		return &t.Value
	}
	return nil
}

// DecodeParams implements HandlerCall.
func (c *Inbound) DecodeParams(v any) error {
	if err := c.x.Decode(c.params, v); err != nil {
		return c.badParams(err)
	}
	if c.x.Lender == nil && !c.intercepted() { // interceptors may read them later
		c.freeParams()
	}
	return nil
}

// DecodeChanged is DecodeParams for parameters that an interceptor has changed: only the original
// ones were checked on arrival.
func (c *Inbound) DecodeChanged(v any) error {
	if _, err := c.x.Weigh(c.params, c.Handler.Params); err != nil {
		return c.badParams(err)
	}
	return c.DecodeParams(v)
}

// badParams returns the error for parameters of c that do not decode.
func (c *Inbound) badParams(err error) error {
	a := values.Error(codec.BadParams, c.Function(), c.Handler.Name, "parameters", err)
	a.Ran = codec.Refused
	return a
}

// EncodeResult implements HandlerCall.
func (c *Inbound) EncodeResult(k *dispatch.Workspace, v any) (result []byte, err error) {
	if c.x.Lender != nil {
		if result, ok := c.x.Lender.Bytes(v); ok {
			return result, nil
		}
	}
	result, err = c.x.Values.Append(k.Result[:0], v)
	if err != nil {
		return nil, values.Error(codec.BadResult, c.Function(), c.Handler.Name, "result", err)
	}
	k.Result = result
	return result, nil
}
