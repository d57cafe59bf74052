package asterisque

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/internal/values"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/priority"
)

// interceptedInbound is a call of the peer as seen by its interceptors, and with their changes as
// seen by its handler.
type interceptedInbound struct {
	call Call
	c    *call.Inbound
	work *dispatch.Workspace
	// source of the handler's parameters, if an interceptor has used their value
	value any
}

// handle runs the handler of a served call through its interceptors.
func handle(served call.HandlerCall, w *dispatch.Workspace) (result []byte, err error) {
	c := served.(*call.Inbound)
	h := &interceptedInbound{c: c, work: w}
	h.call.function, h.call.name, h.call.blocks, h.call.side = c.Function(), c.Handler.Name, c.Pipe() != nil, h
	h.call.params.setRaw(c.RawParams())
	defer h.call.end()
	if around := sessionOf(c.Session()).shared.inward; around != nil {
		err = around(c, &h.call)
	} else {
		err = h.registration().around(c, &h.call)
	}
	h.call.end()
	if err != nil {
		return nil, h.outcome(err)
	}
	if !h.call.result.hasRaw && !h.call.result.hasValue {
		return nil, h.call.unanswered()
	}
	return h.call.RawResult()
}

// registration returns the registration of the function.
func (h *interceptedInbound) registration() *functionHandler {
	return h.c.Handler.Registration.(*functionHandler)
}

// outcome returns err, the error of an interceptor. If the call may have run, the returned error
// implies that.
func (h *interceptedInbound) outcome(err error) error {
	if h.call.mayHaveRun() == 0 {
		return err
	}
	if a := aborts.Of(err); a.Ran != codec.MaybeRan {
		return h.call.withRan(a)
	}
	return err
}

// handleWithin is the end of a node's interceptors: it calls those of the function.
func handleWithin(ctx context.Context, c *Call) error {
	h, ok := c.side.(*interceptedInbound)
	if !ok || !h.c.Handler.Intercepted {
		return c.carryOut(ctx)
	}
	return h.registration().around(ctx, c)
}

// carryOut implements callSide.
func (h *interceptedInbound) carryOut(ctx context.Context) error {
	if err := h.call.params.encoded(h.Coder()); err == nil { // else the handler takes the value
		h.c.SetParams(h.call.params.raw)
	}
	if p := h.Pipe(); p != nil {
		all := h.call.wraps.take(0)
		for i := range all {
			all[i].End = nil // next returns the outcome
		}
		(*piping.End)(p).Wrap(all...)
	}
	h.call.lost = true // until it returns
	result, err := h.c.Invoke(ctx, h, h.work)
	h.call.lost = false
	if err != nil {
		return err
	}
	h.call.result.setRaw(result)
	return nil
}

// Pipe implements callSide and HandlerCall.
func (h *interceptedInbound) Pipe() *pipe.Pipe { return h.c.Pipe() }

// RawParams implements HandlerCall.
func (h *interceptedInbound) RawParams() []byte { return h.c.RawParams() }

// DecodeParams implements HandlerCall.
func (h *interceptedInbound) DecodeParams(v any) error {
	if h.call.params.sets > 0 { // only the original parameters were checked on arrival
		return h.c.DecodeChanged(v)
	}
	return h.c.DecodeParams(v)
}

// DecodedForKey implements HandlerCall.
func (h *interceptedInbound) DecodedForKey() *any {
	if !h.call.params.hasValue {
		return nil
	}
	h.value = h.call.params.place.at()
	return &h.value
}

// EncodeResult implements HandlerCall.
func (h *interceptedInbound) EncodeResult(w *dispatch.Workspace, v any) ([]byte, error) {
	return h.c.EncodeResult(w, v)
}

// Coder implements callSide and HandlerCall.
func (h *interceptedInbound) Coder() *values.Coder { return h.c.Coder() }

// served implements callSide.
func (h *interceptedInbound) served() bool { return true }

// priority implements callSide.
func (h *interceptedInbound) priority() priority.Priority { return h.c.Priority() }

// durable implements callSide.
func (h *interceptedInbound) durable() bool { return h.c.Key() != nil }

// idempotencyKey implements callSide.
func (h *interceptedInbound) idempotencyKey() []byte { return h.c.Key() }

// setIdempotencyKey implements callSide.
func (h *interceptedInbound) setIdempotencyKey([]byte) error {
	return h.call.errorf("its idempotency key has come with it, and cannot be set")
}

// owner implements callSide.
func (h *interceptedInbound) owner() string { return sessionOf(h.c.Session()).owner().Name.Proof }

// forgetAnswer implements callSide.
func (h *interceptedInbound) forgetAnswer() { h.c.ForgetAnswer() }

// failFast implements callSide.
func (h *interceptedInbound) failFast() bool { return false }

func (h *interceptedInbound) expiry() time.Time { return time.Time{} }

// metadata implements callSide.
func (h *interceptedInbound) metadata(context.Context) Metadata { return h.c.Metadata() }

// trace implements callSide.
func (h *interceptedInbound) trace() []byte { return h.c.Trace() }

// setTrace implements callSide.
func (h *interceptedInbound) setTrace([]byte) error {
	return h.call.errorf("its trace context has come with it, and cannot be set")
}

// spared implements callSide. Errors of calls that the handler made do not count.
func (h *interceptedInbound) spared(err error) bool {
	a, ok := err.(*Abort)
	return ok && a != nil && a.Ran == codec.Refused && !a.Remote
}

// fill implements callSide.
func (h *interceptedInbound) fill(c *Call) {
	if new := h.registration().places; new != nil && c.params.place == nil {
		params, result := new()
		if c.params.place = params; c.result.place == nil {
			c.result.place = result
		}
	}
}

// mayWrap implements callSide.
func (h *interceptedInbound) mayWrap() error {
	idle := h.call.mu.TryLock()
	if idle {
		defer h.call.mu.Unlock()
	}
	if !idle || h.call.begun {
		return h.call.errorf("its handler has begun: put code around its Blocks before you call on")
	}
	return nil
}

// again implements callSide: a handler runs once.
func (h *interceptedInbound) again([]piping.StreamInterceptor) {}

// notBegun implements callSide.
func (h *interceptedInbound) notBegun() codec.Ran { return codec.Refused }

// misbehaved implements callSide.
func (h *interceptedInbound) misbehaved(v any) error {
	return guard.Misbehaved(h.Coder().Log, "interceptor", v, "function", h.call.function, "name", h.call.name)
}
