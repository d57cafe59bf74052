package asterisque

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/pipe"
)

// handler is what a service knows of one function. It does not change once it is registered.
type handler struct {
	number    uint16
	name      string
	types     signature
	info      FunctionInfo // what Describe tells of it
	described bool         // info has the schemas
	standard  bool         // it is one of the standard functions
	grants    standards    // it is there only for peers whose Grant has these
	onlyWaits bool         // its calls do, and need no worker of the session: see mostApart
	blocks    bool         // the call carries Blocks: it has a pipe
	inline    bool         // it runs on the reader
	// what its parameters are decoded as, and no part of them is kept unless the codec lends it;
	// nil if they are not
	params  reflect.Type
	free    int    // bytes of parameters that need not be weighed: see weigh.Free
	borrows bool   // it keeps no part of its parameters
	gate    *gate  // nil: any number may run at once
	key     *keyed // nil: calls have no keys
	place   string // where it was registered
	meter   *functionMeter
	// around it, those of its service first; fixed once that is served, as around
	interceptors []Interceptor
	// through the interceptors to the handler; nil without
	around Next
	// places returns where interceptors find the values of a call; nil if it is untyped
	places func() (params, result place)

	// serve runs one call with the context that its handler gets. The result may be in w, and is
	// sent before w is used again.
	serve func(ctx context.Context, c handledCall, w *workspace) (result []byte, err error)
}

// describe fills the schemas in. It panics if there is none of what the function carries.
func (h *handler) describe(w schemaWish) {
	h.described = true
	if of, err := h.types.describe(w.schemas, &h.info); err != nil {
		panic(fmt.Sprintf("asterisque: function %d %q, registered at %s, has no schema of %s, for which Service.Describe asks at %s: %v",
			h.number, h.name, h.place, of, w.place, err))
	}
}

// intercept puts the interceptors of its service around those of h.
func (h *handler) intercept(outer []Interceptor) {
	if all := append(slices.Clone(outer), h.interceptors...); len(all) > 0 {
		h.around = chain(all, carryOut)
	}
}

// standards is a set of standard functions, as far as they are only for some peers.
type standards uint8

const (
	grantDescribe standards = 1 << iota
	grantHealth
)

// handledCall is a call of the peer, as the handler of its function sees it.
type handledCall interface {
	// untyped returns the pipe, or nil if the call takes no Blocks.
	untyped() *pipe.Pipe

	// rawParams returns the parameters as they came.
	rawParams() []byte

	// decodeParams decodes the parameters into v. Unless they were lent to v, nobody needs them any
	// more.
	decodeParams(v any) error

	// decodedForKey returns where the value is that was decoded for the key of the call, or nil.
	decodedForKey() *any

	// encodeResult encodes v into w.
	encodeResult(w *workspace, v any) (result []byte, err error)

	// codecOf returns what encodes and decodes the Blocks of the call.
	codecOf() *values
}

// takeDecoded fills in v what was decoded for the key of c, or reports that nothing was.
func takeDecoded[P any](c handledCall, v *P) bool {
	value := c.decodedForKey()
	if value == nil {
		return false
	}
	p, ok := (*value).(*P)
	if ok {
		*v, *value = *p, nil
	}
	return ok
}

// keyed is a function whose calls have keys.
type keyed struct {
	// of finds out the key of a call, and returns the value that it was found in
	of func(values codec.Values, params []byte) (key uint64, value any, err error)
	// of what value points to; nil if there is none
	params reflect.Type
	// bytes of params that need not be weighed
	free int

	keys keys
}
