package asterisque

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/guard"
)

// misbehaved logs that the handler has not returned, and returns the error for it; v is as for the
// function of this name.
func (c *inboundCall) misbehaved(v any) *Abort {
	guard.Misbehaved(c.x.Log, "handler", v, "function", c.function(), "name", c.handler.name)
	return c.panicked(guard.HowEnded(v))
}

// panicked returns the error for a handler that did not return.
func (c *inboundCall) panicked(how string) *Abort {
	return codec.ErrPanicked.Withf("the handler of function %d %q %s", c.function(), c.handler.name, how)
}

// failed returns err as the Abort of this call. The progress in an error of another call, which the
// handler made, does not apply to this one.
func (c *inboundCall) failed(err error) *Abort {
	of, ok := err.(*Abort)
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
func (c *inboundCall) guard(what string, f func()) (ok bool) {
	return guard.Run(c.x.Log, what, f, "function", c.function(), "name", c.handler.name)
}
