package asterisque

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/pipe"
)

// Caller is what calls are made on: a [Session]; a [Connection], which finds one; or what a program
// makes of them, a wrapper, a choice among several, a recorder, a fake. Typed functions ([Func],
// [Stream]) can be called on each, untyped ones by [CallOn] and [OpenOn].
type Caller interface {
	// Invoke makes c, mostly by the Invoke of another Caller, and returns its outcome: for a call
	// that carries Blocks when its pipe is open, for others when c is over. Without another Caller
	// it answers c: by an error, or by a result ([Call.SetResult]) and nil; pipes are made by
	// sessions only. ctx governs the call, and the whole life of a pipe. Invoke may be called
	// concurrently for different calls; for one call it may be called again once it has returned,
	// and the last outcome counts. After it has returned it does not use c any more. What it
	// changes of the parameters, and puts around Blocks, stays for whoever calls on again: a Caller
	// that does so has an interceptor for it ([Intercept]). Errors that are no *[Abort] become the
	// cause of one.
	Invoke(ctx context.Context, c *Call) error
}

// Chooser is a [Caller] that only chooses the session on which a call is made, as a [Connection]
// does, and package pool. Calls that carry no Blocks, and have no options that somebody on their
// way has to see, are made on that session directly, without a [Call]: that saves a third of what
// they cost. All others go through Invoke, and so do all when there is nothing to choose. It may be
// called concurrently.
type Chooser interface {
	Caller

	// Choose returns the session for one call. It does not wait: without a session that takes calls
	// now it reports false.
	Choose() (c Choice, ok bool)

	// Chosen is told the outcome of the call for which c was chosen, exactly once. If that
	// certainly did not run, and is to be made again, it returns the Caller for that, or else nil.
	Chosen(c Choice, err error) (again Caller)
}

// Choice is what a [Chooser] has chosen. All but the session is for itself.
type Choice struct {
	Session *Session
	Of      any       // what the session belongs to
	At      time.Time // when it was chosen
}

// choosable reports whether a call with such options can be made on whatever session is chosen.
func (c *callConfig) choosable() bool {
	return !c.durable && c.around == nil && c.metadata == nil && c.ttl <= 0
}

// errLost is the outcome of a call whose goroutine was ended.
var errLost = codec.ErrPanicked.Withf("code of the application has ended the goroutine of the call")

// callChosen makes a call on the session that on chooses, by call. Unless that was done, and the
// call is over, it returns the Caller that the call is to be made on by Invoke.
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

// Intercept returns a Caller that makes calls on on with interceptors around each, the first one
// outermost. It panics if one of them, or on, is nil. See [Interceptor] for those of a node.
func Intercept(on Caller, around ...Interceptor) Caller {
	checkInterceptors("Intercept", around)
	if on == nil {
		panic("asterisque: Intercept at " + here() + ": the Caller is nil: give it a Session or a Connection")
	}
	return &interceptedCaller{chain(around, on.Invoke), on}
}

type interceptedCaller struct { // fixed
	next Next
	on   Caller // what is called on
}

// Invoke implements Caller.
func (i *interceptedCaller) Invoke(ctx context.Context, c *Call) error { return i.next(ctx, c) }

// CallOn calls a function with params as they are on any Caller, and waits for its result, as
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
	return m.result.raw, nil
}

// OpenOn calls a function with params as they are on any Caller, and returns the pipe of the
// running call, as [Session.Open] does.
func OpenOn(life context.Context, on Caller, function uint16, params []byte, opts ...CallOption) (*pipe.Pipe, error) {
	m := untypedCall(function, params, opts)
	m.blocks = true
	if a := m.make(life, on); a != nil {
		return nil, a
	}
	return m.pipe, nil
}

func untypedCall(function uint16, params []byte, opts []CallOption) *making {
	m := new(making)
	m.begin(function, "", newCallConfig(opts))
	m.params.setRaw(params)
	return m
}

// knownSession returns the session that calls on on are made on, if that is known already, or nil.
func knownSession(on Caller) *Session {
	switch on := on.(type) {
	case *Session:
		return on
	case *interceptedCaller:
		return knownSession(on.on)
	}
	return nil
}
