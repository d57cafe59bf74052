package asterisque

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/priority"
)

// Call is one call, as those see it that stand around it: every [Interceptor], and whoever
// implements [Caller]. It is theirs until they return, on one goroutine at a time.
//
// Parameters and result are there as bytes, and for a typed function as values. What is not asked
// for is not made: to look at the other form costs its encoding or decoding.
type Call struct {
	name     string // these are fixed
	side     callSide
	function uint16
	blocks   bool

	lost           bool // code around it has ended its goroutine; of whoever has the call, as below
	params, result callValue
	inside         int // how many interceptors are around what runs now
	wraps          wraps

	mu    sync.Mutex // held while the call is carried out
	begun bool       // it was carried out; guarded by mu, as ran and over
	ran   int        // how many attempts may have run
	over  bool       // nothing may be carried out any more
}

// callSide is what differs between a call that this side makes and one that it serves.
type callSide interface {
	// carryOut makes the call at the peer, or runs its handler.
	carryOut(ctx context.Context) error

	// codecOf returns what encodes and decodes, or nil as long as no session is known.
	codecOf() *values

	served() bool
	priority() priority.Priority
	durable() bool
	idempotencyKey() []byte
	setIdempotencyKey(key []byte) error
	owner() string
	forgetAnswer()
	failFast() bool
	expiry() time.Time // when the time to live is up of a call that carries Blocks; zero: not set
	metadata(ctx context.Context) Metadata
	trace() []byte
	setTrace(trace []byte) error

	// spared reports whether err, from carryOut, says that the call certainly did not run.
	spared(err error) bool

	// fill sees to it that a typed call has places for its values.
	fill(c *Call)

	// untyped returns the pipe, or nil.
	untyped() *pipe.Pipe

	// mayWrap returns nil, or why nothing can be put around the Blocks of the call any more.
	mayWrap() error

	// again ends the pipe of an earlier attempt, if there is one, around which all stands.
	again(all []piping.Around)

	// notBegun says how far a call has got that ends now, without having begun.
	notBegun() codec.Ran

	// misbehaved logs that code around the call did not return, and returns the error for it.
	misbehaved(v any) error
}

// Function returns the number of the function.
func (c *Call) Function() uint16 { return c.function }

// Name returns the name of the function, for people. It is empty for an untyped call that this side
// makes, as nobody here knows it.
func (c *Call) Name() string { return c.name }

// Served reports whether the peer makes the call and this side serves it; otherwise this side makes
// it.
func (c *Call) Served() bool { return c.side.served() }

// Blocks reports whether the call carries Blocks: that of a [Stream], or an untyped one that was
// opened, or that is served.
func (c *Call) Blocks() bool { return c.blocks }

// Priority returns the priority of the call.
func (c *Call) Priority() priority.Priority { return c.side.priority() }

// Typed reports whether the function is typed, so that parameters and result are there as values,
// too.
func (c *Call) Typed() bool {
	c.side.fill(c)
	return c.params.place != nil
}

// Durable reports whether the call was made with [WithDurable].
func (c *Call) Durable() bool { return c.side.durable() }

// IdempotencyKey returns the key of a durable call, which is not to be changed: of a served one the
// one that has come with it, of one that this side makes the one that it was given, by
// [WithIdempotencyKey] or SetIdempotencyKey. It is nil otherwise: a Connection draws keys for
// itself.
func (c *Call) IdempotencyKey() []byte { return c.side.idempotencyKey() }

// SetIdempotencyKey is as [WithIdempotencyKey] for a call that this side makes, for whoever makes
// it on several Connections. It fails for served calls, for those that carry Blocks, and for keys
// of no length or more than 64 bytes.
func (c *Call) SetIdempotencyKey(key []byte) error {
	switch {
	case c.blocks:
		return c.errorf("it carries Blocks, and so cannot be repeated")
	case len(key) == 0 || len(key) > message.MaxKey:
		return c.errorf("an idempotency key of %d bytes: it has 1 to %d", len(key), message.MaxKey)
	}
	return c.side.setIdempotencyKey(key)
}

// Owner names whose idempotency key that of a served durable call is: who the peer has proved to
// be, by the Subject of its [Grant] or by its TLS certificate. It is empty if the peer has proved
// nothing, and then the key alone tells its call from those of others; and it is empty for calls
// that this side makes.
func (c *Call) Owner() string { return c.side.owner() }

// ForgetAnswer lets this node not remember the error with which a served durable call ends, though
// it may have run: its repetitions come to the interceptors again. It is for those that remember
// answers elsewhere, and have none yet. Whoever waits for this one here gets the error. It has no
// effect on results, and on other calls.
func (c *Call) ForgetAnswer() { c.side.forgetAnswer() }

// FailFast reports whether the call was made with [WithFailFast]. It is false for served calls.
func (c *Call) FailFast() bool { return c.side.failFast() }

// Deadline returns when the call expires, if it does: by ctx, its context, or, if it carries
// Blocks, by [WithTTL], which does not bound the context of the pipe.
func (c *Call) Deadline(ctx context.Context) (at time.Time, ok bool) {
	at, ok = ctx.Deadline()
	if own := c.side.expiry(); !own.IsZero() && (!ok || own.Before(at)) {
		return own, true
	}
	return at, ok
}

// Metadata returns what travels with the call, whose context ctx is: of a served one what came with
// it, as [MetadataOf] does; of one that this side makes what ctx and options say, which is not to
// be changed. To add to that, pass on a context that says so: see [ContextWithMetadata].
func (c *Call) Metadata(ctx context.Context) Metadata { return c.side.metadata(ctx) }

// Trace returns the trace context that travels with the call, nil if there is none. It is not to be
// changed.
func (c *Call) Trace() []byte { return c.side.trace() }

// SetTrace lets trace travel with a call that this side makes, at most 512 bytes. They are not to
// be changed until the call is over.
func (c *Call) SetTrace(trace []byte) error {
	if len(trace) > message.MaxTrace {
		return fmt.Errorf("asterisque: a trace context of %d bytes exceeds the limit of %d", len(trace), message.MaxTrace)
	}
	return c.side.setTrace(trace)
}

// Pipe returns the pipe of a call that carries Blocks: on the serving side always, on the calling
// side once next has returned. It is nil for other calls. What is put around Blocks takes its place
// when the handler begins, or the caller has the pipe: an interceptor that sends or receives on the
// pipe itself, before that, does so past all of it, and has ended by then.
func (c *Call) Pipe() *pipe.Pipe { return c.side.untyped() }

// Blocks is what an [Interceptor] puts around the Blocks of a call on its own side. Each function
// may be nil. They are called concurrently where the application sends or receives concurrently.
// What was put there first is the outermost: the first for what is sent, the last for what is
// received and for the outcome. They must not ask the pipe for its outcome. One that panics, or
// ends its goroutine, is logged, and aborts its call with ErrPanicked.
type Blocks struct {
	// Send gets the payload of each Block before it is sent, on the goroutine of the sender, and
	// returns what is sent in its place, which is what windows and limits count. The payload is the
	// application's: Send neither changes nor keeps it, and nobody changes what it returns until
	// the Block has been accepted. An error is what the sender gets: nothing of the Block is sent,
	// and the call goes on. A Block that Send has seen may still be dropped.
	Send func(payload []byte) ([]byte, error)

	// Recv gets the payload of each Block that the application takes, on the goroutine of the
	// receiver, and returns what that sees in its place. It may change the payload, and does not
	// keep it. An error is what the receiver gets in place of the Block; the call goes on.
	Recv func(payload []byte) ([]byte, error)

	// End gets the outcome of a call that this side has made, exactly once, also if nobody asks for
	// it, on a goroutine of its own, and returns the outcome that the application sees. Until then
	// that sees a call that is not over. The result is End's to change and to keep; beside an error
	// there is none. On the serving side it is not called: the interceptor is told by next. Nor is
	// it if there is no pipe ([Call.Pipe]) when the interceptor returns.
	End func(result []byte, err error) ([]byte, error)
}

// WrapBlocks puts b around the Blocks of the call. It fails for a call that carries none, and on
// the serving side once its handler has begun.
func (c *Call) WrapBlocks(b Blocks) error {
	if !c.blocks {
		return c.errorf("it carries no Blocks")
	}
	if err := c.side.mayWrap(); err != nil {
		return err
	}
	c.wraps = append(c.wraps, wrap{piping.Around(b), c.inside})
	return nil
}

// Params returns the parameters, a value of the type that the function declares, and not a copy of
// what that refers to. It is nil if the function is untyped, and if the bytes do not decode: the
// call fails for that when an interceptor calls on.
func (c *Call) Params() any { return c.valueOf(&c.params) }

// RawParams returns the parameters as they came, or as they will be sent. They are not to be
// changed, and to be used until the call is over, or made again. It fails if they cannot be
// encoded, and for a typed call as long as no session has been found for it, whose codec is not
// known then.
func (c *Call) RawParams() ([]byte, error) { return c.rawOf(&c.params, "parameters", codec.BadParams) }

// SetParams replaces the parameters. It fails unless v is of the type that the function declares.
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

// SetRawParams replaces the parameters by bytes, which are the call's from then on.
func (c *Call) SetRawParams(raw []byte) {
	c.params.renew()
	c.params.setRaw(raw)
}

// Result returns the result once there is one, as [Call.Params] does the parameters. On the calling
// side a call that carries Blocks has none here: see [Blocks].
func (c *Call) Result() any { return c.valueOf(&c.result) }

// RawResult is to the result as [Call.RawParams] is to the parameters.
func (c *Call) RawResult() ([]byte, error) { return c.rawOf(&c.result, "result", codec.BadResult) }

// SetResult sets the result, or replaces it. It fails unless v is of the type that the function
// declares.
func (c *Call) SetResult(v any) error {
	if err := c.set(&c.result, "result", v); err != nil || !c.Served() {
		return err
	}
	_, err := c.RawResult() // what cannot be sent is better known here than when it is sent
	return err
}

// SetRawResult sets the result, or replaces it, by bytes, which are the call's from then on.
func (c *Call) SetRawResult(raw []byte) { c.result.setRaw(raw) }

// Refuse returns err as an error with which a call ends that did not run: as long as nobody has
// called on, or all who did have learnt that nothing has run, it tells the caller that the call
// certainly did not ([Repeatable]), and the idempotency key, if it has one, is as if it had not
// been used. Otherwise Refuse returns err.
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
	case c.begun && c.Served():
		return c.errorf("an interceptor calls on again: a handler runs once")
	}
	c.begun = true
	c.ran++ // unless it returns, and says otherwise
	err := c.side.carryOut(ctx)
	if c.side.spared(err) {
		c.ran--
	}
	return err
}

// mayHaveRun returns how many attempts may have run.
func (c *Call) mayHaveRun() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ran
}

// withRan returns a as the outcome of the call, once nothing of it is carried out any more: if that
// may have run, a does not say otherwise, whichever call or attempt it is from.
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

// end waits until nothing of the call is carried out any more, and lets nothing begin.
func (c *Call) end() {
	if c.over { // which only whoever calls end sets
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

// An interceptor, or a Connection, may call on again: what those within have changed for one
// attempt must not be there at the next, as they change it again.

// enter is called before an interceptor has c. It returns the parameters that this one gets.
func (c *Call) enter() callValue {
	c.inside++
	if c.blocks {
		c.side.again(c.wraps.take(c.inside))
	}
	return c.params
}

// leave is called when it has returned: those around it have what they have passed on.
func (c *Call) leave(params callValue) {
	c.inside--
	if c.params.sets != params.sets {
		c.params = params
	}
}

func (c *Call) valueOf(v *callValue) any {
	c.side.fill(c)
	if x := c.side.codecOf(); x != nil && v.decoded(x, false) != nil {
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
	x := c.side.codecOf()
	if x == nil {
		return nil, c.errorf("the %s have no bytes before there is a session, whose codec makes them: intercept the calls of the node, or use the value", what)
	}
	if err := v.encoded(x); err != nil {
		return nil, codecError(code, c.function, c.name, what, err)
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
