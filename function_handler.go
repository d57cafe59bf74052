package asterisque

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/values"
	"github.com/asterisque-go/asterisque/pipe"
)

// functionHandler describes one function of a service. It does not change once it is registered.
type functionHandler struct {
	number    uint16
	name      string
	types     signature
	info      FunctionInfo      // answer of Describe
	described bool              // info has the schemas
	standard  bool              // it is one of the standard functions
	grants    standardFunctions // the function exists only for peers whose Grant has these
	// its calls only wait, and need no worker of the session: see mostApart
	onlyWaits bool
	blocks    bool // the call carries Blocks, and has a pipe
	inline    bool // runs on the reader
	// type of the decoded parameters, of which no part is kept unless the codec lends it; nil if
	// they are not decoded
	params  reflect.Type
	free    int                        // bytes of parameters that need no estimate: see sizing.Free
	borrows bool                       // keeps no part of its parameters
	limit   *dispatch.ConcurrencyLimit // nil: unlimited
	key     *keyedFunction             // nil: calls have no keys
	place   string                     // call site of the registration
	meter   *functionMeter
	// those of its service first; fixed once that is served, as around
	interceptors []Interceptor
	// calls the handler through the interceptors; nil without
	around Next
	// places returns the places of a call's values for interceptors; nil if it is untyped
	places func() (params, result valuePlace)

	// serve runs one call with the context for its handler. The result may be in w, and is sent
	// before w is used again.
	serve func(ctx context.Context, c handlerCall, w *dispatch.Workspace) (result []byte, err error)
}

// describe sets the schemas. It panics if a type has no schema.
func (h *functionHandler) describe(w schemaOption) {
	h.described = true
	if of, err := h.types.describe(w.schemas, &h.info); err != nil {
		panic(fmt.Sprintf("asterisque: function %d %q, registered at %s, has no schema of %s, for which Service.Describe asks at %s: %v",
			h.number, h.name, h.place, of, w.place, err))
	}
}

// intercept wraps the interceptors of h in those of its service.
func (h *functionHandler) intercept(outer []Interceptor) {
	if all := append(slices.Clone(outer), h.interceptors...); len(all) > 0 {
		h.around = chain(all, carryOut)
	}
}

// standardFunctions is a set of standard functions that are restricted to some peers.
type standardFunctions uint8

const (
	grantDescribe standardFunctions = 1 << iota
	grantHealth
)

// handlerCall is the view of a peer's call for the handler of its function.
type handlerCall interface {
	// untyped returns the pipe, or nil if the call takes no Blocks.
	untyped() *pipe.Pipe

	// rawParams returns the parameters as they arrived.
	rawParams() []byte

	// decodeParams decodes the parameters into v. Unless they were lent to v, they are no longer
	// needed.
	decodeParams(v any) error

	// decodedForKey returns the place of the value that was decoded for the key of the call, or
	// nil.
	decodedForKey() *any

	// encodeResult encodes v into w.
	encodeResult(w *dispatch.Workspace, v any) (result []byte, err error)

	// codecOf returns the codec for the Blocks of the call.
	codecOf() *values.Coder
}

// takeDecoded sets v to the value decoded for the key of c, and reports whether there was one.
func takeDecoded[P any](c handlerCall, v *P) bool {
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

// keyedFunction is the key function of a function with keys, and the order of its calls.
type keyedFunction struct {
	// of returns the key of a call, and the value from which it was computed
	of func(values codec.Values, params []byte) (key uint64, value any, err error)
	// type of the value that value points to; nil if there is none
	params reflect.Type
	// bytes of params that need no estimate
	free int

	keys dispatch.KeyedOrder
}
