package asterisque

import (
	"fmt"
	"slices"

	"github.com/asterisque-go/asterisque/internal/call"
)

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
