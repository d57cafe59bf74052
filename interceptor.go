package asterisque

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/internal/values"
)

// Interceptor wraps calls: those that this side makes, those that it serves, or both, as reported
// by [Call].Served. It sees a call before and after it calls next, and may change it. The returned
// error is the outcome of the call: the error of next, another one, or nil for a result of its own
// ([Call].SetResult).
//
//	func timed(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
//		begin := time.Now()
//		err := next(ctx, c)
//		slog.Info("call", "function", c.Name(), "served", c.Inbound(), "took", time.Since(begin), "error", err)
//		return err
//	}
//
// The context for next has to be derived from ctx: on the serving side the handler gets it. An
// interceptor may answer without calling next. For a call that this side makes it may call next
// repeatedly, one call after the other; a served call runs once. Inner interceptors see the changes
// that an interceptor makes to parameters and Blocks. When an outer one repeats the call, the
// interceptor gets it without these changes, and makes them again. For a durable call they have to
// be the same ones, since a peer rejects a repetition with other parameters.
//
// When an interceptor returns, the call has ended for it: next fails from then on, and c must not
// be used. An interceptor that calls next on another goroutine waits for it, as inner ones use c.
// Otherwise the call ends when the handler has returned, or the peer has answered.
//
// For a call that carries Blocks, next returns on the serving side when the handler has returned,
// and on the calling side as soon as the pipe is open. The context passed to next is the life of
// the pipe. See [Call].WrapBlocks for the Blocks.
//
// Interceptors run on the goroutine of the call, concurrently for different calls. One that panics
// fails only its call, with ErrPanicked for outer interceptors. One that ends its goroutine
// ([runtime.Goexit]) does the same on the serving side; on the calling side the caller's goroutine
// ends.
//
// The order of interceptors, from the outside, is on the calling side: those of the call
// ([WithCallInterceptors]), those of the Caller ([Intercept]), those of the node
// ([WithOutboundInterceptors]); and on the serving side: those of the node
// ([WithInboundInterceptors]), those of the service ([Service.Intercept]), those of the function
// ([WithFunctionInterceptors]). Within each list, the first is the outermost. Interceptors of a
// node have a session; on a [Connection] they wrap each attempt of a call, the outer ones all
// attempts together.
type Interceptor func(ctx context.Context, c *Call, next Next) error

// Next continues a call: with the next interceptor, and finally with the peer or the handler.
type Next func(ctx context.Context, c *Call) error

// chain returns the composition of interceptors, the first outermost, around last.
func chain(around []Interceptor, last Next) Next {
	for i := len(around) - 1; i >= 0; i-- {
		last = around[i].before(last)
	}
	return last
}

// before returns i wrapped around next.
func (i Interceptor) before(next Next) Next {
	return func(ctx context.Context, c *Call) (err error) {
		returned, params := false, c.enter()
		defer func() {
			c.leave(params)
			if returned {
				return
			}
			if v := recover(); v != nil || !c.lost {
				c.lost = v == nil // outer interceptors need not log it again
				err = c.side.misbehaved(v)
			}
		}()
		err = i(ctx, c, next)
		returned = true
		return err
	}
}

// carryOut is the end of a chain.
func carryOut(ctx context.Context, c *Call) error { return c.carryOut(ctx) }

// checkInterceptors panics if an interceptor is nil. what names the called function.
func checkInterceptors(what string, around []Interceptor) {
	for i, f := range around {
		if f == nil {
			panic(fmt.Sprintf("asterisque: %s at %s: interceptor %d of %d is nil: leave it out", what, here(), i+1, len(around)))
		}
	}
}

// callInterceptors are the wrappers of a call's Blocks.
type callInterceptors []callInterceptor

// callInterceptor is one wrapper, and the number of interceptors around the one that has added it.
type callInterceptor struct {
	piping.StreamInterceptor
	inside int
}

// take removes and returns the wrappers added inside of at least that number of interceptors.
func (w *callInterceptors) take(inside int) (taken []piping.StreamInterceptor) {
	*w = slices.DeleteFunc(*w, func(one callInterceptor) bool {
		if one.inside >= inside {
			taken = append(taken, one.StreamInterceptor)
		}
		return one.inside >= inside
	})
	return taken
}

// callValue is the parameters or the result of a call: as bytes, as a value, or as both.
type callValue struct {
	place valuePlace // nil if the function is untyped
	raw   []byte
	// forms that are present
	hasRaw, hasValue bool
	sets             uint // number of changes
}

// valuePlace holds a value.
type valuePlace interface {
	// at returns a pointer to the value.
	at() any

	// get returns the value.
	get() any

	// set sets the value. It returns false if v is of another type.
	set(v any) bool

	// decode decodes raw into the value. If keep is true, raw has no other user.
	decode(x *values.Coder, raw []byte, keep bool) error

	// of returns the type of the value.
	of() reflect.Type

	// another returns another place of the same type.
	another() valuePlace
}

// typedPlace is the place of a T.
type typedPlace[T any] struct {
	v    T
	free int // bytes of encoded ones that need no estimate
}

func (s *typedPlace[T]) at() any { return &s.v }

func (s *typedPlace[T]) get() any { return s.v }

func (s *typedPlace[T]) set(v any) bool {
	t, ok := v.(T)
	if ok = ok || v == nil && s.of().Kind() == reflect.Interface; ok {
		s.v = t
	}
	return ok
}

func (s *typedPlace[T]) decode(x *values.Coder, raw []byte, keep bool) error {
	var none T
	s.v = none
	return x.DecodeWithin(raw, &s.v, s.free, reflect.TypeFor[T](), keep)
}

func (s *typedPlace[T]) of() reflect.Type { return reflect.TypeFor[T]() }

func (s *typedPlace[T]) another() valuePlace { return &typedPlace[T]{free: s.free} }

// setRaw replaces the content by raw.
func (c *callValue) setRaw(raw []byte) {
	c.raw, c.hasRaw, c.hasValue = raw, true, false
}

// renew is called before a change of c. Another copy of c keeps the old place with its value.
func (c *callValue) renew() {
	if c.hasValue {
		c.place = c.place.another()
	}
	c.sets++
}

// set replaces the content by the value v.
func (c *callValue) set(v any) error {
	if c.place == nil {
		return fmt.Errorf("it is untyped: set the bytes")
	}
	if !c.place.set(v) {
		return fmt.Errorf("it is a %v, and not a %T", c.place.of(), v)
	}
	c.raw, c.hasRaw, c.hasValue = nil, false, true
	return nil
}

// decoded makes the value from the bytes, if necessary. If keep is true, the value may keep the
// bytes.
func (c *callValue) decoded(x *values.Coder, keep bool) error {
	if c.hasValue || c.place == nil || !c.hasRaw {
		return nil
	}
	err := c.place.decode(x, c.raw, keep)
	c.hasValue = err == nil
	return err
}

// encoded makes the bytes from the value, if necessary.
func (c *callValue) encoded(x *values.Coder) error {
	if c.hasRaw || !c.hasValue {
		return nil
	}
	raw, _, err := x.Encode(nil, c.place.at(), false)
	if err == nil {
		c.raw, c.hasRaw = raw, true
	}
	return err
}
