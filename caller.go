package asterisque

import (
	"context"

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
	m := untypedCall(function, params, opts)
	if a := m.make(ctx, on); a != nil {
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
