// Package schema makes JSON Schemas, draft 2020-12, of the Go types that functions carry. Tools get
// them from the description of a service:
//
//	svc.Describe(asterisque.WithSchemas(schema.New()))
//
// It is a module of its own, so that programs without schemas do not need its dependencies. The
// model of a schema is that of github.com/invopop/jsonschema. This package does its own reflection,
// because such libraries follow encoding/json, while codec.CBOR encodes values, with its own tags.
//
// # Meaning of a schema
//
// The schema of a service's input, parameters and Blocks of the caller, allows a value exactly if
// the codec decodes it. Any other value fails with ErrBadParams. Decoding accepts more than one may
// expect: null is the zero value of any type, no field is required, unknown fields are ignored, and
// so are elements of an array beyond its length. Further limits apply: a value may be nested 32
// deep, and may expand to at most Limits.Expansion.
//
// The schema of a service's output, results and Blocks of the callee, allows every value that the
// codec makes of the type. A field is required unless the encoder may omit it (omitempty, omitzero,
// or within an embedded pointer). nil slices, maps and pointers are null.
//
// The tag doc of a field is its description. The tag doc of a blank field describes its struct:
package schema
