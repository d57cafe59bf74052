package asterisque

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/asterisque-go/asterisque/codec"
)

// Describe is the function by which tools list the functions of a service. It exists only for
// services that offer it with [Service.Describe]. An answer that exceeds the caller's
// [Limits].MaxMessage fails with ErrTooLarge: then ask for less.
var Describe = Func[DescribeQuery, []FunctionInfo](65_535, "describe")

// DescribeQuery selects the answer of [Describe]. Its zero value asks for everything.
type DescribeQuery struct {
	// numbers, of which some may be unknown; if empty, all functions
	Functions []uint16 `cbor:"1,keyasint,omitempty" json:"functions,omitempty"`
	NoSchemas bool     `cbor:"2,keyasint,omitempty" json:"no_schemas,omitempty"`
}

// Describe offers [Describe] (function 65,535), the list of functions, to all peers of the service,
// or only to some with [WithGrantOnly]. It panics as [Service.Handle] does, and if [WithSchemas]
// finds a type without a schema.
func (s *Service) Describe(opts ...StandardOption) {
	o := newOffer(opts)
	Describe.Handle(s, s.answerDescribe, standard, o.to(grantDescribe))
	if o.schemas != nil {
		s.describe(schemaOption{o.schemas, here()})
	}
}

// WithSchemas makes [Service.Describe] add schemas to the answer of [Describe], except for the
// untyped functions of [Service.Handle]. Each schema is made once: by Service.Describe for the
// present functions, and at registration for later ones. A type without a schema causes a panic.
// Sessions with another codec than codec.CBOR get no schemas, because the encoding of their values
// differs.
func WithSchemas(s Schemas) StandardOption { return func(o *standardOffer) { o.schemas = s } }

// answerDescribe is the handler of Describe.
func (s *Service) answerDescribe(ctx context.Context, q DescribeQuery) ([]FunctionInfo, error) {
	by := SessionOf(ctx) // nil if an interceptor has replaced the context
	bare := q.NoSchemas || by == nil || by.calls.Coder.Values.Name() != codec.CBOR.Name()
	asked := make(map[uint16]bool)
	for _, n := range q.Functions { // may be long, with duplicates
		asked[n] = true
	}
	list := []FunctionInfo{}
	for _, f := range s.Functions() {
		if len(asked) > 0 && !asked[f.Number] {
			continue
		}
		if bare {
			f.Params, f.Result, f.Sent, f.Received = "", "", "", ""
		}
		list = append(list, f)
	}
	return list, nil
}

// describe makes the schemas of the present functions. Later functions find s.wish. No lock is held
// while the application makes schemas.
func (s *Service) describe(w schemaOption) {
	var before handlerTable
	s.change(func(m handlerTable) { s.schemas, before = w, m })
	for n, h := range before {
		own := *h
		own.describe(w)
		s.change(func(m handlerTable) {
			s.checkUnserved(own.Number, own.Name, "described")
			if m[n] == h {
				m[n] = &own
			}
		})
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

// StandardOption configures [Service.Describe] or [Service.Health].
type StandardOption func(*standardOffer)

// standardOffer is the configuration of a standard function.
type standardOffer struct {
	granted bool    // only to peers with a grant
	schemas Schemas // of Describe; nil: none
}

func newOffer(opts []StandardOption) (o standardOffer) {
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithGrantOnly restricts standard functions to peers with a [Grant] for them: [Describe] to those
// with Grant.Describe, [CheckHealth] and [WatchHealth] to those with Grant.Health. For all other
// peers, including those without a Grant and those that this side has dialled, the functions do not
// exist.
func WithGrantOnly() StandardOption { return func(o *standardOffer) { o.granted = true } }

// to restricts a function, if granted is set, to peers with a Grant of all of need.
func (o *standardOffer) to(need standardFunctions) HandlerOption {
	return func(h *functionHandler) {
		if o.granted {
			h.Grants = uint8(need)
		}
	}
}
