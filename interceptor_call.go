package asterisque

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/internal/values"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/priority"
)

// Call is one call, as seen by each [Interceptor] and [Caller]. It belongs to them until they
// return, on one goroutine at a time.
//
// Parameters and result are available as bytes, and for a typed function as values. The second form
// is made on demand: access to it costs an encoding or decoding.
type Call struct {
	name     string // fixed, as the next three
	side     callSide
	function uint16
	blocks   bool

	lost           bool // an interceptor has ended its goroutine; owned by the caller, as below
	params, result callValue
	inside         int // number of interceptors around the running one
	wraps          callInterceptors

	mu    sync.Mutex // held while the call is carried out
	begun bool       // carryOut was called; guarded by mu, as ran and over
	ran   int        // number of attempts that may have run
	over  bool       // carryOut must not be called any more
}

// callSide is the interface for the differences of calls that this side makes and serves.
type callSide interface {
	// carryOut makes the call at the peer, or runs its handler.
	carryOut(ctx context.Context) error

	// Coder returns the codec, or nil while no session is known.
	Coder() *values.Coder

	served() bool
	priority() priority.Priority
	durable() bool
	idempotencyKey() []byte
	setIdempotencyKey(key []byte) error
	owner() string
	forgetAnswer()
	failFast() bool
	expiry() time.Time // end of the time to live of a call that carries Blocks; zero: not set
	metadata(ctx context.Context) Metadata
	trace() []byte
	setTrace(trace []byte) error

	// spared reports whether err, from carryOut, implies that the call certainly did not run.
	spared(err error) bool

	// fill makes the places of a typed call's values, if necessary.
	fill(c *Call)

	// Pipe returns the pipe, or nil.
	Pipe() *pipe.Pipe

	// mayWrap returns an error if the Blocks of the call can no longer be wrapped.
	mayWrap() error

	// again ends the pipe of an earlier attempt, if there is one, with the wrappers in all.
	again(all []piping.StreamInterceptor)

	// notBegun returns the progress of a call that ends now, without having begun.
	notBegun() codec.Ran

	// misbehaved logs that an interceptor did not return, and returns the error for it.
	misbehaved(v any) error
}

// Function returns the number of the function.
func (c *Call) Function() uint16 { return c.function }

// Name returns the name of the function, for people. It is empty for an untyped call that this side
// makes, as the name is not known here.
func (c *Call) Name() string { return c.name }

// Inbound reports whether this side serves the call of the peer. Otherwise it makes the call.
func (c *Call) Inbound() bool { return c.side.served() }

// Blocks reports whether the call carries Blocks: a call of a [Stream], or an untyped one that was
// opened, or that is served.
func (c *Call) Blocks() bool { return c.blocks }

// Priority returns the priority of the call.
func (c *Call) Priority() priority.Priority { return c.side.priority() }

// Typed reports whether the function is typed, so that parameters and result are also available as
// values.
func (c *Call) Typed() bool {
	c.side.fill(c)
	return c.params.place != nil
}

// Durable reports whether the call was made with [WithDurable].
func (c *Call) Durable() bool { return c.side.durable() }

// IdempotencyKey returns the key of a durable call, which must not be changed: for a served call
// the key that has arrived with it, for a call that this side makes the key set by
// [WithIdempotencyKey] or SetIdempotencyKey. It is nil otherwise: keys that a Connection draws are
// not visible.
func (c *Call) IdempotencyKey() []byte { return c.side.idempotencyKey() }

// SetIdempotencyKey is [WithIdempotencyKey] for a call that this side makes, for Callers that make
// it on several Connections. It fails for served calls, for calls that carry Blocks, and for keys
// that are empty or longer than 64 bytes.
func (c *Call) SetIdempotencyKey(key []byte) error {
	switch {
	case c.blocks:
		return c.errorf("it carries Blocks, and so cannot be repeated")
	case len(key) == 0 || len(key) > message.MaxKey:
		return c.errorf("an idempotency key of %d bytes: it has 1 to %d", len(key), message.MaxKey)
	}
	return c.side.setIdempotencyKey(key)
}

// Owner returns the owner of a served durable call's idempotency key: the identity that the peer
// has proved, by the Subject of its [Grant] or by its TLS certificate. It is empty without a proof,
// and then the key alone identifies the call; it is also empty for calls that this side makes.
func (c *Call) Owner() string { return c.side.owner() }

// ForgetAnswer makes this node forget the error with which a served durable call ends, even if it
// may have run: repetitions reach the interceptors again. It is for interceptors that remember
// answers elsewhere, and have none yet. Repetitions that wait here get the error. ForgetAnswer has
// no effect on results, and on other calls.
func (c *Call) ForgetAnswer() { c.side.forgetAnswer() }

// FailFast reports whether the call was made with [WithFailFast]. It is false for served calls.
func (c *Call) FailFast() bool { return c.side.failFast() }

// Deadline returns the deadline of the call, if it has one: that of ctx, its context, or, for a
// call that carries Blocks, of [WithTTL], which does not bound the context of the pipe.
func (c *Call) Deadline(ctx context.Context) (at time.Time, ok bool) {
	at, ok = ctx.Deadline()
	if own := c.side.expiry(); !own.IsZero() && (!ok || own.Before(at)) {
		return own, true
	}
	return at, ok
}

// Metadata returns the metadata of the call. ctx is the context of the call. For a served call it
// is as [MetadataOf]. For a call that this side makes it is that of ctx and of the options, which
// must not be changed. To add metadata, pass a derived context to next: see [ContextWithMetadata].
func (c *Call) Metadata(ctx context.Context) Metadata { return c.side.metadata(ctx) }

// Trace returns the trace context of the call, or nil if there is none. It must not be changed.
func (c *Call) Trace() []byte { return c.side.trace() }

// SetTrace sets the trace context of a call that this side makes, at most 512 bytes. They must not
// be changed until the call has ended.
func (c *Call) SetTrace(trace []byte) error {
	if len(trace) > message.MaxTrace {
		return fmt.Errorf("asterisque: a trace context of %d bytes exceeds the limit of %d", len(trace), message.MaxTrace)
	}
	return c.side.setTrace(trace)
}

// Pipe returns the pipe of a call that carries Blocks: on the serving side always, on the calling
// side once next has returned. It is nil for other calls. Wrappers of Blocks take effect when the
// handler begins, or the caller has the pipe. An interceptor that itself sends or receives on the
// pipe before bypasses them, and must have finished by then.
func (c *Call) Pipe() *pipe.Pipe { return c.side.Pipe() }

// Blocks wraps the Blocks of a call on the side of its [Interceptor]. Each function may be nil. The
// functions are called concurrently if the application sends or receives concurrently. The first
// wrapper is the outermost: it is the first for sent Blocks, and the last for received ones and for
// the outcome. The functions must not wait for the outcome of the pipe. One that panics, or ends
// its goroutine, is logged, and aborts its call with ErrPanicked.
type Blocks struct {
	// Send gets the payload of each Block before it is sent, on the goroutine of the sender, and
	// returns its replacement, which windows and limits count. The application owns the payload:
	// Send must neither change nor keep it. The replacement must not change until the Block has
	// been accepted. The sender gets an error of Send: then the Block is not sent, and the call
	// continues. A Block may still be dropped after Send.
	Send func(payload []byte) ([]byte, error)

	// Recv gets the payload of each Block that the application takes, on the goroutine of the
	// receiver, and returns its replacement. It may change the payload, and must not keep it. The
	// receiver gets an error of Recv in place of the Block; the call continues.
	Recv func(payload []byte) ([]byte, error)

	// End gets the outcome of a call that this side has made, and returns the outcome for the
	// application. It is called exactly once, even if the application does not wait for the
	// outcome, on a goroutine of its own. Until it returns the call has not ended for the
	// application. End owns the result, which is empty if err is not nil. End is not called on the
	// serving side, where next returns the outcome, nor if there is no pipe ([Call.Pipe]) when the
	// interceptor returns.
	End func(result []byte, err error) ([]byte, error)
}

// WrapBlocks adds b around the Blocks of the call. It fails for a call without Blocks, and on the
// serving side after the begin of the handler.
func (c *Call) WrapBlocks(b Blocks) error {
	if !c.blocks {
		return c.errorf("it carries no Blocks")
	}
	if err := c.side.mayWrap(); err != nil {
		return err
	}
	c.wraps = append(c.wraps, callInterceptor{piping.StreamInterceptor(b), c.inside})
	return nil
}

// Params returns the parameters as a value of the function's type, which is not a deep copy. It is
// nil if the function is untyped, and if the bytes do not decode: then the call fails in next.
func (c *Call) Params() any { return c.valueOf(&c.params) }

// RawParams returns the encoded parameters, as they arrived or will be sent. They must not be
// changed, and are valid until the call has ended, or is repeated. RawParams fails if the value
// cannot be encoded, and for a typed call while no session, and so no codec, is known.
func (c *Call) RawParams() ([]byte, error) { return c.rawOf(&c.params, "parameters", codec.BadParams) }

// SetParams replaces the parameters. It fails unless v has the type that the function declares.
func (c *Call) SetParams(v any) error {
	c.side.fill(c)
	to := c.params
	to.renew()
	if err := c.set(&to, "parameters", v); err != nil {
		return err
	}
	c.params = to
	return nil
}

// SetRawParams replaces the parameters by bytes, which the call owns from then on.
func (c *Call) SetRawParams(raw []byte) {
	c.params.renew()
	c.params.setRaw(raw)
}

// Result returns the result once there is one, as [Call.Params] does for the parameters. On the
// calling side a call that carries Blocks has no result here: see [Blocks].
func (c *Call) Result() any { return c.valueOf(&c.result) }

// RawResult is for the result as [Call.RawParams] for the parameters.
func (c *Call) RawResult() ([]byte, error) { return c.rawOf(&c.result, "result", codec.BadResult) }

// SetResult sets or replaces the result. It fails unless v has the type that the function declares.
func (c *Call) SetResult(v any) error {
	if err := c.set(&c.result, "result", v); err != nil || !c.Inbound() {
		return err
	}
	_, err := c.RawResult() // an invalid result is reported now
	return err
}

// SetRawResult sets or replaces the result by bytes, which the call owns from then on.
func (c *Call) SetRawResult(raw []byte) { c.result.setRaw(raw) }

// Refuse returns err as the error of a call that did not run. If no attempt has begun, or all
// attempts certainly did not run, the error is [Repeatable] for the caller, and an idempotency key
// of the call counts as unused. Otherwise Refuse returns err unchanged.
func (c *Call) Refuse(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil || c.ran > 0 {
		return err
	}
	a := *codec.AbortOf(err)
	a.Ran, a.Remote = c.side.notBegun(), false
	return &a
}

// carryOut is the end of every chain.
func (c *Call) carryOut(ctx context.Context) error {
	if !c.mu.TryLock() {
		return c.errorf("an interceptor calls on while the call is being carried out: wait for the first to return")
	}
	defer c.mu.Unlock()
	switch {
	case c.over:
		return c.errorf("an interceptor calls on after the call has ended: call on before the interceptor returns")
	case c.begun && c.Inbound():
		return c.errorf("an interceptor calls on again: a handler runs once")
	}
	c.begun = true
	c.ran++ // until it returns with another outcome
	err := c.side.carryOut(ctx)
	if c.side.spared(err) {
		c.ran--
	}
	return err
}

// mayHaveRun returns the number of attempts that may have run.
func (c *Call) mayHaveRun() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ran
}

// withRan returns a as the outcome of the call, after the last carryOut. If the call may have run,
// the outcome implies that, even if a is the error of another call or attempt.
func (c *Call) withRan(a *Abort) *Abort {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ran == 0 || a.Ran == codec.MaybeRan {
		return a
	}
	b := *a
	b.Ran = codec.MaybeRan
	return &b
}

// end waits until carryOut has returned, and prevents later calls of it.
func (c *Call) end() {
	if c.over { // set only by the caller's goroutine
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

// unanswered returns the error of a call that an interceptor has answered without a result.
func (c *Call) unanswered() error {
	return c.errorf("an interceptor has neither called on, nor set a result, nor returned an error")
}

// errorf returns an error that names the call.
func (c *Call) errorf(format string, args ...any) error {
	return &Abort{Code: codec.Failed, Message: fmt.Sprintf("function %d %q: %s", c.function, c.name, fmt.Sprintf(format, args...))}
}

// An interceptor, or a Connection, may repeat a call: changes that inner interceptors have made for
// one attempt are undone before the next, as they make them again.

// enter is called before an interceptor gets c. It returns the parameters for this interceptor.
func (c *Call) enter() callValue {
	c.inside++
	if c.blocks {
		c.side.again(c.wraps.take(c.inside))
	}
	return c.params
}

// leave is called when the interceptor has returned: outer ones have the parameters that they
// passed on.
func (c *Call) leave(params callValue) {
	c.inside--
	if c.params.sets != params.sets {
		c.params = params
	}
}

func (c *Call) valueOf(v *callValue) any {
	c.side.fill(c)
	if x := c.side.Coder(); x != nil && v.decoded(x, false) != nil {
		return nil
	}
	if !v.hasValue {
		return nil
	}
	return v.place.get()
}

func (c *Call) rawOf(v *callValue, what string, code Code) ([]byte, error) {
	if v.hasRaw {
		return v.raw, nil
	}
	x := c.side.Coder()
	if x == nil {
		return nil, c.errorf("the %s have no bytes before there is a session with a codec: intercept the calls of the node, or use the value", what)
	}
	if err := v.encoded(x); err != nil {
		return nil, values.Error(code, c.function, c.name, what, err)
	}
	return v.raw, nil
}

func (c *Call) set(v *callValue, what string, value any) error {
	c.side.fill(c)
	if err := v.set(value); err != nil {
		return c.errorf("the %s cannot be set: %v", what, err)
	}
	return nil
}
