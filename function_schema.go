package asterisque

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Schema is a JSON Schema, draft 2020-12, as JSON text; empty, there is none. In JSON it is not a
// text, but the schema itself.
type Schema string

// MarshalJSON returns the schema.
func (s Schema) MarshalJSON() ([]byte, error) { return []byte(s), nil }

// UnmarshalJSON stores the schema that text is.
func (s *Schema) UnmarshalJSON(text []byte) error {
	*s = Schema(text)
	return nil
}

// Schemas makes schemas of Go types, for values as codec.CBOR encodes them; see [WithSchemas].
// A type that has no schema is an error, which should name the part of the type that is the reason,
// and the way out.
type Schemas interface {
	// Input returns the schema of what is decoded as a t: parameters, and Blocks of the caller.
	Input(t reflect.Type) (Schema, error)

	// Output returns the schema of what is encoded of a t: results, and Blocks of the callee.
	Output(t reflect.Type) (Schema, error)
}

// WithSchemas lets [Describe] tell the schemas of what functions carry, apart from the untyped ones
// of [Service.Handle]. Each is made once: by Service.Describe of the functions that are there, and
// when one is registered of those that come later. If one has no schema, that panics. Sessions with
// another codec than codec.CBOR are told none, because their values look different.
func WithSchemas(s Schemas) DescribeOption {
	return func(d *description) { d.schemas = s }
}

// signature has the types of what a function carries, as its caller sees them: nil where it carries
// nothing, or bytes.
type signature struct{ params, result, sent, received reflect.Type }

// String returns them in Go's words.
func (s *signature) String() string {
	switch {
	case s.params == nil:
		return "func([]byte) []byte, Blocks both ways"
	case s.sent == nil:
		return fmt.Sprintf("func(%v) %v", s.params, s.result)
	}
	return fmt.Sprintf("func(%v) %v, caller sends %v, callee sends %v", s.params, s.result, s.sent, s.received)
}

// describe fills in the schemas of h. It panics if there is none of what h carries. place is where
// the program has asked for them.
func (h *handler) describe(s Schemas, place string) {
	h.described = true
	for _, part := range []struct {
		what string
		of   reflect.Type
		made func(reflect.Type) (Schema, error)
		to   *Schema
	}{
		{"its parameters", h.types.params, s.Input, &h.info.Params},
		{"its result", h.types.result, s.Output, &h.info.Result},
		{"what its caller sends", h.types.sent, s.Input, &h.info.Sent},
		{"what its callee sends", h.types.received, s.Output, &h.info.Received},
	} {
		if part.of == nil {
			continue
		}
		made, err := part.made(part.of)
		if err == nil && made != "" && !json.Valid([]byte(made)) {
			err = fmt.Errorf("what was made of %v is no JSON", part.of)
		}
		if err != nil {
			panic(fmt.Sprintf("asterisque: function %d %q, registered at %s, has no schema of %s, for which Service.Describe asks at %s: %v",
				h.number, h.name, h.place, part.what, place, err))
		}
		*part.to = made
	}
}
