package asterisque

import (
	"encoding/json"
	"fmt"
	"reflect"
)

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
