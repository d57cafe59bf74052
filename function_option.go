package asterisque

import (
	"hash/maphash"
	"reflect"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/weigh"
)

// HandlerOption sets one property of a function that is registered at a [Service].
type HandlerOption func(*handler)

// WithInline runs the function on the goroutine that reads the session's Wire, which spares a call
// the way to a worker. The handler must be short and must not block: nothing else of the session is
// read meanwhile. It cannot call its caller back, which fails with ErrUnavailable; WithKey and
// WithConcurrency have no meaning for it, and [Workers].Session does not count it. It may close its
// session. If it ends its goroutine ([runtime.Goexit]) the session ends as well. It pays for
// functions that carry no Blocks ([Func]): their answers to all that has arrived are written
// together.
func WithInline() HandlerOption { return func(h *handler) { h.inline = true } }

// WithBorrowedParams only lends the parameters to the handler: as soon as it has returned, what
// comes next is read into their memory, and whoever still looks at them, or at a part of them, sees
// that instead. The result may be a part of them. It spares a call with 1 KiB of parameters and
// more an allocation, and one with 8 KiB and more mostly a copy as well, which is a quarter of the
// time of a call with 4 KiB or 64 KiB. It is for handlers that get bytes as they came: those of
// [Service.Handle], and those of [Func] whose P is []byte while the session uses [codec.Raw]. What
// is decoded is the handler's own in any case.
func WithBorrowedParams() HandlerOption { return func(h *handler) { h.borrows = true } }

// WithFunctionInterceptors puts interceptors around the calls of the function, the first one
// outermost. It panics if one of them is nil. See [Interceptor] for who else may stand around them.
func WithFunctionInterceptors(around ...Interceptor) HandlerOption {
	checkInterceptors("WithFunctionInterceptors", around)
	return func(h *handler) { h.interceptors = append(h.interceptors, around...) }
}

// WithConcurrency bounds how many calls of the function run at once, over all sessions of the
// service. Others wait without keeping a worker, sessions in turn, the calls of one session by
// priority and arrival; as long as they wait they count for the limits of their session and for the
// window that its peer has for calls, which the peer can keep free by [WithCallWindow]. A call that
// is made within another one of the same function does not wait. Less than 1 counts as 1.
func WithConcurrency(calls int) HandlerOption {
	return func(h *handler) { h.gate = &gate{free: max(calls, 1)} }
}

// WithKey names a key of each call by its parameters, of type P as those of the function: calls of
// one key run one at a time, in the order of their arrival, over all sessions of the service; calls
// of different keys run in parallel. A call that is made within another one with the same key does
// not wait for that one.
//
// key runs on the goroutine that reads the session's Wire and must be short; a panic refuses the
// call with ErrPanicked, and the end of the goroutine ends the session too. Keys are compared by a
// hash of 64 bits: should two collide, their calls take turns. P is decoded for the key within the
// bounds of Limits.Expansion. If it is the P of the function, and holds no more than the parameters
// did, the handler gets that value; otherwise they are decoded once more: declare a P with fewer
// fields than the parameters have if they are large.
//
// If P is []byte, and not the P of the function, key gets the parameters as they came, encoded, and
// must not keep them.
func WithKey[P any, K comparable](key func(params P) K) HandlerOption {
	checkKey("WithKey", key == nil)
	t := reflect.TypeFor[P]()
	named := newKeys(t, weigh.Free(t), func(values codec.Values, params []byte) (k K, value any, err error) {
		p := new(P)
		if err = values.Decode(params, p); err == nil {
			k = key(*p)
		}
		return k, p, err
	})
	raw, ok := any(key).(func([]byte) K)
	if !ok {
		return func(h *handler) { h.key = named() }
	}
	ofBytes := newKeys(nil, 0, func(_ codec.Values, params []byte) (K, any, error) { return raw(params), nil, nil })
	return func(h *handler) {
		if h.params == t {
			h.key = named()
		} else {
			h.key = ofBytes()
		}
	}
}

// newKeys returns what makes keys of parameters that are decoded as a t, of which up to free bytes
// need not be weighed; or of those that are not decoded, if t is nil.
func newKeys[K comparable](t reflect.Type, free int, of func(codec.Values, []byte) (K, any, error)) func() *keyed {
	seed := maphash.MakeSeed()
	return func() *keyed {
		return &keyed{params: t, free: free, keys: keys{last: make(map[uint64]*turn)}, of: func(values codec.Values, params []byte) (uint64, any, error) {
			k, value, err := of(values, params)
			if err != nil {
				return 0, nil, err
			}
			return maphash.Comparable(seed, k), value, nil
		}}
	}
}
