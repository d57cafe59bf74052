package asterisque

import (
	"hash/maphash"
	"reflect"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/sizing"
)

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
// service. Further calls wait without a worker: sessions in turn, the calls of one session by
// priority and arrival. Waiting calls count for the limits of their session and for the peer's
// budget for calls; the peer can avoid that by [WithMaxOutstanding]. A call nested within another
// one of the same function does not wait. Less than 1 counts as 1.
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
