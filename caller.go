package asterisque

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/pipe"
)

// Caller makes calls. Callers are a [Session], a [Connection], which chooses a session, and types
// of the application: a wrapper, a load balancer, a recorder, a fake. Typed functions ([Func],
// [Stream]) can be called on each, untyped ones by [CallOn] and [OpenOn].
type Caller interface {
	// Invoke makes the call c, usually by the Invoke of another Caller, and returns its outcome:
	// for a call that carries Blocks when its pipe is open, otherwise when c has ended. Without
	// another Caller it answers c by an error, or by a result ([Call.SetResult]) and nil; only
	// sessions can make pipes. ctx governs the call, and the whole life of a pipe.
	//
	// Invoke may be called concurrently for different calls. For one call it may be called again
	// after it has returned, and the last outcome counts. Invoke does not use c after it has
	// returned. Changes of the parameters, and wrappers of Blocks, remain for repetitions of the
	// call: a Caller with such changes uses an interceptor ([Intercept]). An error that is not an
	// *[Abort] becomes the cause of one.
	Invoke(ctx context.Context, c *Call) error
}

// Chooser is a [Caller] that only chooses the session of a call, as a [Connection] and package pool
// do. A call without Blocks, and without options that interceptors or Callers have to see, is made
// directly on the chosen session, without a [Call]: that saves a third of its cost. All other calls
// go through Invoke, and so do all calls while Choose returns false. A Chooser may be called
// concurrently.
type Chooser interface {
	Caller

	// Choose returns the session for one call. It does not block: it returns false if no session
	// takes calls at present.
	Choose() (c Choice, ok bool)

	// Chosen receives the outcome of the call for which c was chosen, exactly once. If the call
	// certainly did not run, and is to be repeated, Chosen returns the Caller for the repetition,
	// otherwise nil.
	Chosen(c Choice, err error) (again Caller)
}

// Choice is the result of a [Chooser]. All fields but Session are for the Chooser itself.
type Choice struct {
	Session *Session
	Of      any       // owner of the session
	At      time.Time // time of the choice
}

// choosable reports whether a call with such options can be made on any chosen session.
func (c *callConfig) choosable() bool {
	return !c.Durable && c.around == nil && c.Metadata == nil && c.TTL <= 0
}

// errLost is the outcome of a call after the end of its goroutine.
var errLost = codec.ErrPanicked.Withf("code of the application has ended the goroutine of the call")

// callChosen makes a call, by the function call, on the session that on chooses. Unless the call
// was made and has ended, callChosen returns the Caller that has to make it by Invoke.
func callChosen[R any](on Caller, cfg *callConfig, call func(s *Session) (R, error)) (result R, left Caller, over bool, err error) {
	by, ok := on.(Chooser)
	if !ok || !cfg.choosable() {
		return result, on, false, nil
	}
	c, ok := by.Choose()
	if !ok {
		return result, on, false, nil
	}
	err = errLost
	defer func() {
		left = by.Chosen(c, err)
		over = left == nil
	}()
	result, err = call(c.Session)
	return result, nil, true, err
}

// Intercept returns a Caller that makes calls on on, each wrapped in the interceptors, the first
// one outermost. It panics if on or an interceptor is nil. [Interceptor] lists the interceptors of
// a node.
func Intercept(on Caller, around ...Interceptor) Caller {
	checkInterceptors("Intercept", around)
	if on == nil {
		panic("asterisque: Intercept at " + here() + ": the Caller is nil: give it a Session or a Connection")
	}
	return &interceptedCaller{chain(around, on.Invoke), on}
}

type interceptedCaller struct { // fixed
	next Next
	on   Caller // the wrapped Caller
}

// Invoke implements Caller.
func (i *interceptedCaller) Invoke(ctx context.Context, c *Call) error { return i.next(ctx, c) }

// CallOn calls a function on any Caller with params as they are, and waits for its result, as
// [Session.Call] does.
func CallOn(ctx context.Context, on Caller, function uint16, params []byte, opts ...CallOption) ([]byte, error) {
	result, left, over, err := callChosen(on, newCallConfig(opts), func(s *Session) ([]byte, error) {
		return s.Call(ctx, function, params, opts...)
	})
	if over {
		return result, err
	}
	m := untypedCall(function, params, opts)
	if a := m.make(ctx, left); a != nil {
		return nil, a
	}
	return m.call.result.raw, nil
}

// OpenOn calls a function on any Caller with params as they are, and returns the pipe of the
// running call, as [Session.Open] does.
func OpenOn(life context.Context, on Caller, function uint16, params []byte, opts ...CallOption) (*pipe.Pipe, error) {
	m := untypedCall(function, params, opts)
	m.call.blocks = true
	if a := m.make(life, on); a != nil {
		return nil, a
	}
	return m.pipe, nil
}

func untypedCall(function uint16, params []byte, opts []CallOption) *interceptedOutbound {
	m := new(interceptedOutbound)
	m.begin(function, "", newCallConfig(opts))
	m.call.params.setRaw(params)
	return m
}

// knownSession returns the session for calls on on, if it is known already, or nil.
func knownSession(on Caller) *Session {
	switch on := on.(type) {
	case *Session:
		return on
	case *interceptedCaller:
		return knownSession(on.on)
	}
	return nil
}

// Call calls a function of the peer with params as they are, and blocks until its result arrives.
// The caller owns the result. Call does not retain params. The wait ends with the session and with
// ctx; the end of ctx also ends the handler's context. Every error is an *[Abort]; [Repeatable]
// reports whether repeating the call is safe.
//
// Before it is sent, a call waits for budget of the peer, and while the session is at its outbound
// soft limit. A nested call, made with a handler's context on the handler's session, does not wait
// for the peer: it fails with ErrOverloaded if the budget for nested calls is exhausted.
func (s *Session) Call(ctx context.Context, function uint16, params []byte, opts ...CallOption) ([]byte, error) {
	cfg := newCallConfig(opts)
	if plainOn(s, cfg) {
		return s.calls.Call(ctx, function, params, &cfg.Options)
	}
	return CallOn(ctx, s, function, params, opts...)
}

// Open calls a function of the peer and returns the pipe of the running call, which carries Blocks
// both ways until the call ends. Open does not retain params. life governs the whole call: when it
// ends, the call is aborted, and the handler's context ends. Open waits for budget: on this side
// for the Blocks of the callee, at the peer for one more call, and while the session is at its
// outbound soft limit. Every error is an *[Abort].
//
// A pipe occupies memory on both sides until it ends: by itself, by Abort or through life.
func (s *Session) Open(life context.Context, function uint16, params []byte, opts ...CallOption) (*pipe.Pipe, error) {
	cfg := newCallConfig(opts)
	if !plainOn(s, cfg) {
		return OpenOn(life, s, function, params, opts...)
	}
	p, a := s.calls.Open(life, function, params, &cfg.Options)
	if a != nil {
		return nil, a
	}
	return p, nil
}

// plainOn reports whether a call on s, which may be nil, with such options has no interceptors.
func plainOn(s *Session, cfg *callConfig) bool {
	return s != nil && s.shared.outward == nil && !cfg.Durable && cfg.around == nil
}

// Invoke implements [Caller]: it makes the call c at the peer. See [Session.Call] and
// [Session.Open].
func (s *Session) Invoke(ctx context.Context, c *Call) error {
	m, a := makingOf(c)
	switch {
	case a != nil:
		return a
	case s == nil:
		return errNoSession
	case m.cfg.Durable && m.cfg.Key == nil && !m.call.blocks:
		return aborts.NeverSent(codec.ErrUnavailable.Withf("a durable call needs a Connection: see Node.Connect"))
	}
	m.makeOn(&s.calls)
	if outward := s.shared.outward; outward != nil {
		return outward(ctx, c)
	}
	return c.carryOut(ctx)
}
