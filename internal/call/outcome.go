package call

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/guard"
)

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
