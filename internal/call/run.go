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

// handlerRun is the run of a handler for a call of the peer.
type handlerRun struct{ c *Inbound }

// Invoke calls the handler, for which the call is as, and converts a panic into an error. It is the
// end of the interceptors.
func (c *Inbound) Invoke(ctx context.Context, as HandlerCall, k *dispatch.Workspace) (result []byte, err error) {
	return handlerRun{c}.invoke(ctx, as, k)
}

// run runs the handler and answers.
func (h handlerRun) run(k *dispatch.Workspace) {
	defer h.afterRun(k)

	if err := h.c.Err(); err != nil { // canceled, or expired, while it waited
		h.leaveNested()
		response(h).refuse(codec.AbortOf(err))
		return
	}
	if m := h.c.extras.first(); m != nil {
		h.c.calls().durable().Start(m)
	}
	var began time.Duration
	if h.c.extras.timed() {
		began = h.c.calls().clock().Now()
		waited, meter := began-h.c.extras.arrived, h.c.Handler.Meter
		h.c.calls().Dispatcher().NoteWait(waited)
		meter.Queued.Add(waited)
	}
	h.c.work.Serving = true
	result, err := h.serve(k)
	var a *codec.Abort
	if err != nil {
		a = h.failed(err)
	}
	h.c.work.Serving = false
	if h.c.extras.timed() {
		meter := h.c.Handler.Meter
		meter.Ran.Add(h.c.calls().clock().Now() - began)
	}
	h.leaveNested()
	response(h).answer(result, a)
	if cap(k.Result) > MaxKeptResult {
		k.Result = nil
	}
}

// leaveNested releases the place of a nested call. It is called before the answer is put, as the
// receiver of the answer may make the next call at once.
func (h handlerRun) leaveNested() {
	if h.c.work.Nested && !h.c.work.ByReader {
		h.c.calls().Dispatcher().Return(job(h).Cost(), true)
	}
}

// serve calls the handler through its interceptors.
func (h handlerRun) serve(k *dispatch.Workspace) (result []byte, err error) {
	if h.c.intercepted() {
		return h.c.calls().out.common.Handle(h.c, k)
	}
	return h.invoke(h.c, h.c, k)
}

// invoke calls the handler, for which the call is as, and converts a panic into an error.
func (h handlerRun) invoke(ctx context.Context, as HandlerCall, k *dispatch.Workspace) (result []byte, err error) {
	returned := false
	defer func() {
		if !returned {
			result, err = nil, h.misbehaved(recover())
		}
	}()
	result, err = h.c.Handler.Serve(ctx, as, k)
	returned = true
	return result, err
}

// afterRun is deferred while c is run.
func (h handlerRun) afterRun(k *dispatch.Workspace) {
	if h.c.work.Serving {
		h.answerLost(h.panicked("ended its goroutine"))
	}
	h.c.freeParams() // not earlier: the result may be a part of them
}

// answerLost answers c at the end of its goroutine.
func (h handlerRun) answerLost(a *codec.Abort) {
	h.c.work.Serving = false
	h.leaveNested()
	response(h).answer(nil, a)
}

// misbehaved logs that the handler has not returned, and returns the error for it; v is as for the
// function of this name.
func (h handlerRun) misbehaved(v any) *codec.Abort {
	guard.Misbehaved(h.c.calls().Coder.Log, "handler", v, "function", h.c.Function(), "name", h.c.Handler.Name)
	return h.panicked(guard.HowEnded(v))
}

// panicked returns the error for a handler that did not return.
func (h handlerRun) panicked(how string) *codec.Abort {
	return codec.ErrPanicked.Withf("the handler of function %d %q %s", h.c.Function(), h.c.Handler.Name, how)
}

// failed returns err as the Abort of this call. The progress in an error of another call, which the
// handler made, does not apply to this one.
func (h handlerRun) failed(err error) *codec.Abort {
	of, ok := err.(*codec.Abort)
	plain := false
	if !ok || of == nil { // methods of err are the application's
		ok = h.guard("error of a handler", func() { of, plain = codec.AbortOf(err), isPlain(err) })
	}
	if !ok {
		of = h.panicked("returned an error that panicked")
	}
	a := *of
	if a.Remote || a.Ran != codec.Refused {
		a.Ran, a.Remote = codec.MaybeRan, false
	}
	if plain {
		return h.told(err, &a)
	}
	return &a
}

// guard calls f, application code that belongs to the call.
func (h handlerRun) guard(what string, f func()) (ok bool) {
	return guard.Run(h.c.calls().Coder.Log, what, f, "function", h.c.Function(), "name", h.c.Handler.Name)
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
func (h handlerRun) told(err error, a *codec.Abort) *codec.Abort {
	if !h.c.calls().serving.private {
		return a
	}
	id := NewErrorID()
	h.c.calls().Coder.Log.Warn("handler failed", "id", id, "session", h.c.calls().Coder.Session, "function", h.c.Function(), "name", h.c.Handler.Name, "error", err)
	b := *a
	b.Message, b.Cause = "internal error, id "+id, nil
	return &b
}

// toldAborting returns the error for the peer if the handler has aborted the pipe with a.
func (h handlerRun) toldAborting(a *codec.Abort) *codec.Abort {
	plain := true // default if a method of the application's error fails
	guard.Run(h.c.calls().Coder.Log, "error of a handler", func() { plain = a.Cause.Error() == a.Message && isPlain(a.Cause) },
		"function", h.c.Function(), "name", h.c.Handler.Name)
	if plain {
		return h.told(a.Cause, a)
	}
	return a
}

// isPlain reports whether err is neither an Abort nor just the error of a context.
func isPlain(err error) bool {
	var a *codec.Abort
	return !errors.As(err, &a) && err != context.Canceled && err != context.DeadlineExceeded
}

// These methods are the HandlerCall of a call without interceptors.

// RawParams implements HandlerCall.
func (c *Inbound) RawParams() []byte { return c.params }

// Coder implements HandlerCall.
func (c *Inbound) Coder() *values.Coder { return &c.calls().Coder }

// DecodedForKey implements HandlerCall.
func (c *Inbound) DecodedForKey() *any {
	if _, t := (job{c}).Turn(); t != nil {
		return &t.Value
	}
	return nil
}

// DecodeParams implements HandlerCall.
func (c *Inbound) DecodeParams(v any) error {
	if err := c.calls().Coder.Decode(c.params, v); err != nil {
		return c.badParams(err)
	}
	if c.calls().Coder.Lender == nil && !c.intercepted() { // interceptors may read them later
		c.freeParams()
	}
	return nil
}

// DecodeChanged is DecodeParams for parameters that an interceptor has changed: only the original
// ones were checked on arrival.
func (c *Inbound) DecodeChanged(v any) error {
	if _, err := c.calls().Coder.Weigh(c.params, c.Handler.Params); err != nil {
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
	if c.calls().Coder.Lender != nil {
		if result, ok := c.calls().Coder.Lender.Bytes(v); ok {
			return result, nil
		}
	}
	result, err = c.calls().Coder.Values.Append(k.Result[:0], v)
	if err != nil {
		return nil, values.Error(codec.BadResult, c.Function(), c.Handler.Name, "result", err)
	}
	k.Result = result
	return result, nil
}
