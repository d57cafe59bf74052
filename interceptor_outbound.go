package asterisque

import (
	"context"
	"fmt"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/internal/idempotency"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/internal/values"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/priority"
)

// interceptedOutbound is a call that this side makes, through all its interceptors and Callers.
type interceptedOutbound struct {
	call    Call
	cfg     *callConfig
	expires time.Time      // end of the time to live of a call that carries Blocks
	x       *call.Calls    // of the session of the call; nil while none is known
	unary   *call.Outbound // the last attempt of a unary call, which has the result; nil before
	pipe    *pipe.Pipe     // the last attempt of one that carries Blocks
}

// typedCall is a making of a typed function, with the places of its values.
type typedCall[P, R any] struct {
	interceptedOutbound
	in  typedPlace[P]
	out typedPlace[R]
}

func newTypedCall[P, R any](number uint16, name string, params P, freeResult int, cfg *callConfig) *typedCall[P, R] {
	t := &typedCall[P, R]{in: typedPlace[P]{v: params}, out: typedPlace[R]{free: freeResult}}
	t.begin(number, name, cfg)
	t.call.params = callValue{place: &t.in, hasValue: true}
	t.call.result.place = &t.out
	return t
}

// begin prepares m, which owns cfg from then on, unless that is noOptions.
func (m *interceptedOutbound) begin(number uint16, name string, cfg *callConfig) {
	m.cfg = cfg
	m.call.function, m.call.name, m.call.side = number, name, m
}

// own returns the options of the call for modification.
func (m *interceptedOutbound) own() *callConfig {
	if m.cfg == &noOptions {
		m.cfg = new(callConfig)
	}
	return m.cfg
}

// make makes the call on on: it returns at its end, or when its pipe is open.
func (m *interceptedOutbound) make(ctx context.Context, on Caller) *Abort {
	good := false
	defer func() { m.finish(good) }()
	if on == nil {
		return aborts.NeverSent(codec.ErrUnavailable.Withf("function %d %q is called on a nil Caller: call it on a Session or a Connection", m.call.function, m.call.name))
	}
	if err := m.checkKey(); err != nil {
		return err
	}
	switch {
	case m.cfg.TTL <= 0:
	case m.call.blocks: // ctx is the life of the pipe, which outlives make
		m.expires = time.Now().Add(m.cfg.TTL)
	default:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, m.cfg.TTL)
		defer cancel()
		m.cfg.TTL = 0 // ctx has it
	}
	if s := knownSession(on); s != nil {
		m.x = &s.calls
	}
	if m.cfg.Metadata != nil {
		// the context has it from here on, for interceptors to read and to extend
		ctx, m.cfg.Metadata = ContextWithMetadata(ctx, m.cfg.Metadata), nil
	}
	var err error
	if m.cfg.around == nil {
		err = on.Invoke(ctx, &m.call)
	} else {
		err = chain(m.cfg.around, on.Invoke)(ctx, &m.call)
	}
	m.call.end()
	err = m.outcome(err)
	if good = err == nil; good {
		return nil
	}
	return m.abortOf(err)
}

// checkKey returns an error if the idempotency key of the call is invalid.
func (m *interceptedOutbound) checkKey() *Abort {
	switch {
	case m.cfg.Key == nil:
		return nil
	case m.call.blocks:
		return aborts.NeverSent(idempotency.ErrStream)
	case len(m.cfg.Key) == 0 || len(m.cfg.Key) > message.MaxKey:
		return aborts.NeverSent(codec.ErrBadParams.Withf("an idempotency key of %d bytes: it has 1 to %d", len(m.cfg.Key), message.MaxKey))
	}
	return nil
}

// outcome returns err, or an error if there is no result although err is nil.
func (m *interceptedOutbound) outcome(err error) error {
	switch {
	case err != nil:
		return err
	case m.call.blocks && m.pipe != nil:
		return nil
	case m.call.blocks || !m.call.result.hasRaw && !m.call.result.hasValue:
		return m.call.unanswered()
	}
	if m.x == nil && !m.call.result.hasValue && m.call.result.place != nil {
		return m.call.errorf("the result is set as bytes, and no session was found with a codec for them: set the value")
	}
	return m.decodeResult(false)
}

// decodeResult decodes the result of a typed call, if necessary.
func (m *interceptedOutbound) decodeResult(keep bool) error {
	if m.x == nil {
		return nil
	}
	if err := m.call.result.decoded(&m.x.Coder, keep); err != nil {
		return values.Error(codec.BadResult, m.call.function, m.call.name, "result", err)
	}
	return nil
}

// abortOf returns err, which may be the application's, as an Abort.
func (m *interceptedOutbound) abortOf(err error) (a *Abort) {
	defer func() {
		if v := recover(); v != nil { // methods of err are the application's
			a = codec.AbortOf(m.misbehaved(v))
		}
	}()
	return m.call.withRan(codec.AbortOf(err))
}

// finish ends all attempts of the call. If pipe is true, the caller gets the last pipe.
func (m *interceptedOutbound) finish(pipe bool) {
	m.call.end()
	m.free()
	switch {
	case m.pipe == nil:
	case pipe:
		(*piping.End)(m.pipe).Wrap(m.call.wraps.take(0)...)
	default:
		m.again(m.call.wraps.take(0))
	}
}

// makeOn sets the Calls for the next attempt.
func (m *interceptedOutbound) makeOn(x *call.Calls) {
	if m.x != nil && m.x.Coder.Codec != x.Coder.Codec && m.call.params.hasValue {
		m.call.params.raw, m.call.params.hasRaw = nil, false // encoded by another codec
	}
	m.x = x
}

// spend reduces the time to live of a call that carries Blocks by the time that has passed. It
// returns an error if none is left.
func (m *interceptedOutbound) spend() error {
	if m.expires.IsZero() {
		return nil
	}
	if m.cfg.TTL = time.Until(m.expires); m.cfg.TTL <= 0 {
		return aborts.NeverSent(call.ErrTimeUp)
	}
	return nil
}

// free releases the last attempt.
func (m *interceptedOutbound) free() {
	if m.unary == nil {
		return
	}
	if !m.unary.Own { // the memory of the result will be reused
		m.call.result.raw, m.call.result.hasRaw = nil, false
	}
	m.unary.Free()
	m.unary = nil
}

// carryOut implements callSide.
func (m *interceptedOutbound) carryOut(ctx context.Context) error {
	if m.call.result.hasRaw || m.call.result.hasValue { // of an earlier attempt
		m.call.result = callValue{place: m.call.result.place}
	}
	if m.call.blocks {
		return m.openPipe(ctx)
	}
	return m.callUnary(ctx)
}

// callUnary makes a unary call.
func (m *interceptedOutbound) callUnary(ctx context.Context) error {
	m.free()
	own := m.call.params.place == nil || m.x.Coder.Lender != nil
	m.unary = m.x.NewCall(&m.cfg.Options, own)
	params := m.call.params.raw
	if !m.call.params.hasRaw && m.call.params.hasValue {
		var err error
		if params, err = m.unary.EncodeParams(m.call.params.place.at()); err != nil {
			return aborts.NeverSent(values.Error(codec.BadParams, m.call.function, m.call.name, "parameters", err))
		}
	}
	if a := m.unary.Do(ctx, m.call.function, params, &m.cfg.Options); a != nil {
		return a
	}
	m.call.result.setRaw(m.unary.Result)
	return m.decodeResult(own)
}

// openPipe opens the pipe of a call that carries Blocks.
func (m *interceptedOutbound) openPipe(ctx context.Context) error {
	m.again(nil)
	if err := m.spend(); err != nil {
		return err
	}
	if err := m.call.params.encoded(&m.x.Coder); err != nil {
		return aborts.NeverSent(values.Error(codec.BadParams, m.call.function, m.call.name, "parameters", err))
	}
	p, a := m.x.Open(ctx, m.call.function, m.call.params.raw, &m.cfg.Options)
	if a != nil {
		return a
	}
	m.pipe = p
	return nil
}

// Coder implements callSide.
func (m *interceptedOutbound) Coder() *values.Coder {
	if m.x == nil {
		return nil
	}
	return &m.x.Coder
}

// served implements callSide.
func (m *interceptedOutbound) served() bool { return false }

// priority implements callSide.
func (m *interceptedOutbound) priority() priority.Priority { return m.cfg.Priority }

// durable implements callSide.
func (m *interceptedOutbound) durable() bool { return m.cfg.Durable }

// idempotencyKey implements callSide.
func (m *interceptedOutbound) idempotencyKey() []byte { return m.cfg.Key }

// setIdempotencyKey implements callSide.
func (m *interceptedOutbound) setIdempotencyKey(key []byte) error {
	cfg := m.own()
	cfg.Durable, cfg.Key = true, key
	return nil
}

// owner implements callSide.
func (m *interceptedOutbound) owner() string { return "" }

// forgetAnswer implements callSide.
func (m *interceptedOutbound) forgetAnswer() {}

// failFast implements callSide.
func (m *interceptedOutbound) failFast() bool { return m.cfg.FailFast }

func (m *interceptedOutbound) expiry() time.Time { return m.expires }

// metadata implements callSide.
func (m *interceptedOutbound) metadata(ctx context.Context) Metadata {
	return call.MetadataIn(ctx)
}

// trace implements callSide.
func (m *interceptedOutbound) trace() []byte { return m.cfg.Trace }

// setTrace implements callSide.
func (m *interceptedOutbound) setTrace(trace []byte) error {
	m.own().Trace = trace
	return nil
}

// spared implements callSide.
func (m *interceptedOutbound) spared(err error) bool { return err != nil && Repeatable(err) }

// fill implements callSide: the places are present already.
func (m *interceptedOutbound) fill(*Call) {}

// Pipe implements callSide.
func (m *interceptedOutbound) Pipe() *pipe.Pipe { return m.pipe }

// mayWrap implements callSide.
func (m *interceptedOutbound) mayWrap() error { return nil }

// again implements callSide.
func (m *interceptedOutbound) again(all []piping.StreamInterceptor) {
	if m.pipe == nil {
		return
	}
	(*piping.End)(m.pipe).Wrap(all...)
	m.pipe.Abort(nil)
	m.pipe = nil
}

// notBegun implements callSide.
func (m *interceptedOutbound) notBegun() codec.Ran { return codec.NeverSent }

// misbehaved implements callSide. The goroutine is the caller's, so its end is no error.
func (m *interceptedOutbound) misbehaved(v any) error {
	switch {
	case v == nil:
		return nil
	case m.x == nil: // no log is known yet
		a := codec.ErrPanicked.Withf("an interceptor of function %d %q panicked", m.call.function, m.call.name)
		a.Cause = fmt.Errorf("%v", v)
		return a
	}
	return guard.Misbehaved(m.x.Coder.Log, "interceptor", v, "function", m.call.function, "name", m.call.name)
}

// makingOf returns c as a making if this side makes the call.
func makingOf(c *Call) (*interceptedOutbound, *Abort) {
	if c != nil && c.side != nil {
		if m, ok := c.side.(*interceptedOutbound); ok {
			return m, nil
		}
		return nil, aborts.NeverSent(codec.ErrUnavailable.Withf("function %d %q: a call that is served is not made again: make one of its own, by CallOn or OpenOn", c.function, c.name))
	}
	return nil, aborts.NeverSent(codec.ErrUnavailable.Withf("there is no call to make: calls are made by typed functions, CallOn and OpenOn"))
}
