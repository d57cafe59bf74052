package asterisque

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"reflect"
	"slices"

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
	c := s.calls.NewCall(&cfg.Options, s.calls.Coder.Lender != nil)
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
	if err := s.calls.Coder.DecodeWithin(c.Result, &v.result, f.result, reflect.TypeFor[R](), true); err != nil {
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

// functionHandler is the registration of one function at a service. It does not change once it is
// registered.
type functionHandler struct {
	call.Handler
	types     signature
	info      FunctionInfo // answer of Describe
	described bool         // info has the schemas
	standard  bool         // it is one of the standard functions
	place     string       // call site of the registration
	// those of its service first; fixed once that is served, as around
	interceptors []Interceptor
	// calls the handler through the interceptors; nil without
	around Next
	// places returns the places of a call's values for interceptors; nil if it is untyped
	places func() (params, result valuePlace)
}

// describe sets the schemas. It panics if a type has no schema.
func (h *functionHandler) describe(w schemaOption) {
	h.described = true
	if of, err := h.types.describe(w.schemas, &h.info); err != nil {
		panic(fmt.Sprintf("asterisque: function %d %q, registered at %s, has no schema of %s, for which Service.Describe asks at %s: %v",
			h.Number, h.Name, h.place, of, w.place, err))
	}
}

// offer prepares h for calls: it wraps the interceptors of h in those of its service. No copy of h
// is made from then on.
func (h *functionHandler) offer(outer []Interceptor) *call.Handler {
	h.Registration = h
	if all := append(slices.Clone(outer), h.interceptors...); len(all) > 0 {
		h.around, h.Intercepted = chain(all, carryOut), true
	}
	return &h.Handler
}

// standardFunctions is a set of standard functions that are restricted to some peers.
type standardFunctions uint8

const (
	grantDescribe standardFunctions = 1 << iota
	grantHealth
)

// takeDecoded sets v to the value decoded for the key of c, and reports whether there was one.
func takeDecoded[P any](c call.HandlerCall, v *P) bool {
	value := c.DecodedForKey()
	if value == nil {
		return false
	}
	p, ok := (*value).(*P)
	if ok {
		*v, *value = *p, nil
	}
	return ok
}

// HandlerOption sets one property of a function that is registered at a [Service].
type HandlerOption func(*functionHandler)

// WithInline runs the function on the goroutine that reads the session's Wire, which saves the
// switch to a worker. The handler must be short and must not block: no other message of the session
// is read meanwhile. It cannot call its caller back, which fails with ErrUnavailable. WithKey and
// WithConcurrency have no effect, and [Workers].Session does not count the call. The handler may
// close its session. If it ends its goroutine ([runtime.Goexit]) the session ends as well. The
// option is worthwhile for functions without Blocks ([Func]): the answers to all calls that have
// arrived are written together.
func WithInline() HandlerOption { return func(h *functionHandler) { h.Inline = true } }

// WithBorrowedParams only lends the parameters to the handler: after it has returned, their memory
// is reused for later messages, so no reference to them, or to a part of them, may remain. The
// result may be a part of them. The option saves a call with 1 KiB of parameters and more an
// allocation, and one with 8 KiB and more usually a copy as well, which is a quarter of the time of
// a call with 4 KiB or 64 KiB. It applies to handlers of plain bytes: those of [Service.Handle],
// and those of [Func] with the P []byte while the session uses [codec.Raw]. Decoded parameters
// always belong to the handler.
func WithBorrowedParams() HandlerOption { return func(h *functionHandler) { h.Borrows = true } }

// WithFunctionInterceptors wraps the calls of the function in interceptors, the first one
// outermost. It panics if an interceptor is nil. [Interceptor] lists the other places for
// interceptors.
func WithFunctionInterceptors(around ...Interceptor) HandlerOption {
	checkInterceptors("WithFunctionInterceptors", around)
	return func(h *functionHandler) { h.interceptors = append(h.interceptors, around...) }
}

// WithConcurrency bounds the calls of the function that run at once, over all sessions of the
// service. Further calls wait without a worker: peer identities in turn, the sessions of each in
// turn, the calls of one session by priority and arrival. Waiting calls count for the limits of
// their session and for the peer's budget for calls; the peer can avoid that by
// [WithMaxOutstanding]. A call nested within another one of the same function does not wait. Less
// than 1 counts as 1.
func WithConcurrency(calls int) HandlerOption {
	return func(h *functionHandler) { h.Limit = dispatch.NewConcurrencyLimit(max(calls, 1)) }
}

// WithKey computes a key of each call from its parameters, of type P as those of the function.
// Calls of one key run one at a time, in the order of their arrival, over all sessions of the
// service; calls of different keys run in parallel. A call nested within another one with the same
// key does not wait for it.
//
// key runs on the goroutine that reads the session's Wire and must be short. A panic rejects the
// call with ErrPanicked, and the end of the goroutine also ends the session. Keys are compared by a
// hash of 64 bits: calls with colliding keys take turns. P is decoded for the key within the bounds
// of Limits.Expansion. If both P are the same type, the handler gets the same value, unless that
// holds more memory than the parameters did; then they are decoded once more. For large parameters,
// declare a P with fewer fields.
//
// If P is []byte, and not the P of the function, key gets the encoded parameters, and must not keep
// them.
func WithKey[P any, K comparable](key func(params P) K) HandlerOption {
	checkKey("WithKey", key == nil)
	t := reflect.TypeFor[P]()
	named := newKeys(t, sizing.Free(t), func(values codec.Values, params []byte) (k K, value any, err error) {
		p := new(P)
		if err = values.Decode(params, p); err == nil {
			k = key(*p)
		}
		return k, p, err
	})
	raw, ok := any(key).(func([]byte) K)
	if !ok {
		return func(h *functionHandler) { h.Key = named() }
	}
	ofBytes := newKeys(nil, 0, func(_ codec.Values, params []byte) (K, any, error) { return raw(params), nil, nil })
	return func(h *functionHandler) {
		if h.Params == t {
			h.Key = named()
		} else {
			h.Key = ofBytes()
		}
	}
}

// newKeys returns a constructor of keys for parameters that are decoded as a t, of which up to free
// bytes need no estimate. If t is nil, parameters are not decoded.
func newKeys[K comparable](t reflect.Type, free int, of func(codec.Values, []byte) (K, any, error)) func() *call.Key {
	seed := maphash.MakeSeed()
	return func() *call.Key {
		return &call.Key{Params: t, Free: free, KeyOf: func(values codec.Values, params []byte) (uint64, any, error) {
			k, value, err := of(values, params)
			if err != nil {
				return 0, nil, err
			}
			return maphash.Comparable(seed, k), value, nil
		}}
	}
}

// Schema is a JSON Schema, draft 2020-12, as JSON text; "" means none. A Schema is encoded in JSON
// as the schema itself, not as a text.
type Schema string

// MarshalJSON returns the schema.
func (s Schema) MarshalJSON() ([]byte, error) { return []byte(s), nil }

// UnmarshalJSON stores text as the schema.
func (s *Schema) UnmarshalJSON(text []byte) error {
	*s = Schema(text)
	return nil
}

// Schemas makes schemas of Go types, for values as codec.CBOR encodes them; see [WithSchemas].
// Package schema, a module of its own, has an implementation. The error for a type without a schema
// should name the part of the type that is the reason, and a remedy.
type Schemas interface {
	// Input returns the schema of values decoded as a t: parameters, and Blocks of the caller.
	Input(t reflect.Type) (Schema, error)

	// Output returns the schema of encoded values of a t: results, and Blocks of the callee.
	Output(t reflect.Type) (Schema, error)
}

// schemaOption is a program's request for schemas.
type schemaOption struct {
	schemas Schemas // nil: no request
	place   string  // call site of Service.Describe
}

// FunctionInfo describes one function of a service. It has schemas if the service makes them: see
// [WithSchemas].
type FunctionInfo struct {
	Number uint16 `cbor:"1,keyasint" json:"number"`
	Name   string `cbor:"2,keyasint" json:"name"`
	// in Go syntax, such as "func(string) int"
	Signature string `cbor:"3,keyasint" json:"signature"`

	Params Schema `cbor:"4,keyasint,omitempty" json:"params,omitempty"`
	Result Schema `cbor:"5,keyasint,omitempty" json:"result,omitempty"`
	// of the Blocks that the caller sends, and of those that it receives
	Sent     Schema `cbor:"6,keyasint,omitempty" json:"sent,omitempty"`
	Received Schema `cbor:"7,keyasint,omitempty" json:"received,omitempty"`
}

// signature has the types of a function's values, from the view of its caller: nil for missing
// values and for bytes.
type signature struct{ params, result, sent, received reflect.Type }

// String returns the types in Go syntax.
func (s *signature) String() string {
	switch {
	case s.params == nil:
		return "func([]byte) []byte, Blocks both ways"
	case s.sent == nil:
		return fmt.Sprintf("func(%v) %v", s.params, s.result)
	}
	return fmt.Sprintf("func(%v) %v, caller sends %v, callee sends %v", s.params, s.result, s.sent, s.received)
}

// describe sets the schemas of s in info. If a type has no schema, it returns an error, and the
// part with that type.
func (s *signature) describe(by Schemas, info *FunctionInfo) (of string, err error) {
	for _, part := range []struct {
		name string
		of   reflect.Type
		make func(reflect.Type) (Schema, error)
		to   *Schema
	}{
		{"its parameters", s.params, by.Input, &info.Params},
		{"its result", s.result, by.Output, &info.Result},
		{"what its caller sends", s.sent, by.Input, &info.Sent},
		{"what its callee sends", s.received, by.Output, &info.Received},
	} {
		if part.of == nil {
			continue
		}
		*part.to, err = part.make(part.of)
		if err == nil && *part.to != "" && !json.Valid([]byte(*part.to)) {
			err = fmt.Errorf("the schema of %v is not JSON", part.of)
		}
		if err != nil {
			return part.name, err
		}
	}
	return "", nil
}

// Options of the standard functions, which a service has only if it offers them: Service.Describe
// and Service.Health.
