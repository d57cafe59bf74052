package asterisque

import (
	"context"
	"reflect"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/sizing"
	"github.com/asterisque-go/asterisque/internal/values"
)

// Function is a function that takes P and returns R, identified on both sides by its number. A
// declaration in a package that both sides import is the whole contract, checked by the compiler. A
// Function is a small value, safe for concurrent use.
type Function[P, R any] struct {
	number         uint16
	name           string
	params, result int // bytes of encoded ones that need no estimate: see sizing.Free
}

// Func declares a function. name is for people: errors, logs and statistics. Numbers from 65,280 on
// belong to the standard functions of the protocol, such as [Describe].
func Func[P, R any](number uint16, name string) Function[P, R] {
	return Function[P, R]{number, name, sizing.Free(reflect.TypeFor[P]()), sizing.Free(reflect.TypeFor[R]())}
}

// Number returns the function's number.
func (f Function[P, R]) Number() uint16 { return f.number }

// Name returns the function's name.
func (f Function[P, R]) Name() string { return f.name }

// Handle registers h as the function's handler. [Service.Handle] documents the context, errors and
// panics of h, and invalid registrations. Parameters that do not decode as P, or exceed
// [Limits].Expansion, fail the call with ErrBadParams before h runs; the error names the place in
// the parameters.
func (f Function[P, R]) Handle(svc *Service, h func(ctx context.Context, params P) (R, error), opts ...HandlerOption) {
	checkHandler(f.number, f.name, h == nil)
	serve := func(ctx context.Context, c call.HandlerCall, k *dispatch.Workspace) (result []byte, err error) {
		v := operandsFor[P, R](&k.Operands)
		defer v.empty()
		if !takeDecoded(c, &v.params) {
			if err := c.DecodeParams(&v.params); err != nil {
				return nil, err
			}
		}
		if v.result, err = h(ctx, v.params); err != nil {
			return nil, err
		}
		return c.EncodeResult(k, &v.result)
	}
	svc.set(f.number, opts, &functionHandler{
		Handler: call.Handler{Name: f.name, Params: reflect.TypeFor[P](), Free: f.params, Serve: serve},
		types:   signature{params: reflect.TypeFor[P](), result: reflect.TypeFor[R]()},
		places:  func() (valuePlace, valuePlace) { return &typedPlace[P]{free: f.params}, &typedPlace[R]{free: f.result} },
	})
}

// Call calls the function at the peer of a session, or on any other [Caller], and waits for the
// result. The wait ends with the session and with ctx; the end of ctx also ends the handler's
// context. Every error is an *[Abort]; [Repeatable] reports whether repeating the call is safe.
func (f Function[P, R]) Call(ctx context.Context, on Caller, params P, opts ...CallOption) (result R, err error) {
	cfg := newCallConfig(opts)
	if s, ok := on.(*Session); ok && plainOn(s, cfg) {
		return f.callPlain(ctx, s, params, cfg)
	}
	result, left, over, err := callChosen(on, cfg, func(s *Session) (R, error) {
		if plainOn(s, cfg) {
			return f.callPlain(ctx, s, params, cfg)
		}
		return f.callOn(ctx, s, params, newCallConfig(opts))
	})
	if over {
		return result, err
	}
	return f.callOn(ctx, left, params, cfg)
}

// callOn is Call on any Caller.
func (f Function[P, R]) callOn(ctx context.Context, on Caller, params P, cfg *callConfig) (result R, err error) {
	c := newTypedCall[P, R](f.number, f.name, params, f.result, cfg)
	if a := c.make(ctx, on); a != nil {
		return result, a
	}
	return c.out.v, nil
}

// callPlain is Call without interceptors.
func (f Function[P, R]) callPlain(ctx context.Context, s *Session, params P, cfg *callConfig) (result R, err error) {
	c := s.calls.NewCall(&cfg.Options, s.calls.Lender != nil)
	defer c.Free()
	v := operandsFor[P, R](&c.Operands)
	defer v.empty()
	v.params = params
	encoded, err := c.EncodeParams(&v.params)
	if err != nil {
		return result, aborts.NeverSent(values.Error(codec.BadParams, f.number, f.name, "parameters", err))
	}
	if a := c.Do(ctx, f.number, encoded, &cfg.Options); a != nil {
		return result, a
	}
	if err := s.calls.DecodeWithin(c.Result, &v.result, f.result, reflect.TypeFor[R](), true); err != nil {
		return result, values.Error(codec.BadResult, f.number, f.name, "result", err)
	}
	return v.result, nil
}

// operands holds the values of a call for a codec, which takes pointers. It is kept from call to
// call to avoid allocations.
type operands[P, R any] struct {
	params P
	result R
}

// operandsFor returns the operands kept from the last call, if the types match, or new ones, which
// are kept.
func operandsFor[P, R any](kept *any) *operands[P, R] {
	b, ok := (*kept).(*operands[P, R])
	if !ok {
		b = new(operands[P, R])
		*kept = b
	}
	return b
}

// empty clears the values.
func (b *operands[P, R]) empty() { *b = operands[P, R]{} }
