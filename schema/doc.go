// Package schema makes JSON Schemas, draft 2020-12, of what functions carry, of their Go types, for
// tools that ask a service what it offers:
//
//	svc.Describe(asterisque.WithSchemas(schema.New()))
//
// It is a module of its own, so that programs without schemas need nothing of what it needs. The
// model of a schema is that of github.com/invopop/jsonschema. What stands in it is found out here,
// because the reflection of such libraries follows encoding/json, and values cross as codec.CBOR
// has them, with its tags.
//
// # What a schema says
//
// What a service takes, parameters and Blocks of the caller, has a schema that allows a value
// exactly if the codec decodes it; all else it refuses with ErrBadParams. That is more than one may
// expect. null is the zero value of any type, no field has to be there, one that the struct does
// not have is ignored, and so are elements of an array beyond its length. Limits hold besides: a
// value may be nested 32 deep, and become no more than Limits.Expansion says.
//
// What a service gives, results and Blocks of the callee, has one that allows all that the codec
// makes of the type. A field is required unless it may be left out (omitempty, omitzero, or within
// an embedded pointer), and nil slices, maps and pointers are null.
//
// The tag doc of a field is its description; that of a blank field is that of its struct:
//
//	type Window struct {
//		_ struct{} `doc:"how values are summed"`
//		N int      `cbor:"n" doc:"how many of them"`
//	}
//
// # Values of CBOR in JSON
//
// JSON has fewer types than CBOR. A schema describes values in this form, which a tool translates
// with the schema at hand:
//
//	CBOR                       JSON
//	integer, of any size       a number without a fraction
//	floating point             a number; NaN and infinities have no form
//	text string                a string
//	byte string                a string in base64 with padding, where the schema has contentEncoding "base64"
//	tag 0, a time              a string, where the schema has format "date-time"
//	array, true, false, null   the same
//	map                        an object
//	map key that is a text     a name
//	map key that is an integer a name of decimal digits, where the schema of the property, or
//	                           propertyNames for all of them, has x-cbor-key "integer"
//
// The other way round a number without a fraction is an integer, and one beyond 64 bits a bignum,
// where the schema allows "integer" or says nothing of types. Where it allows "number" only,
// integers beyond 64 bits are floating point. format and contentEncoding need not be checked: what
// they mean stands beside them as a pattern, where a service takes such a value.
//
// # What has no schema
//
// Types that CBOR or JSON cannot hold are an [*Error], with which Service.Describe panics:
// channels, functions, complex numbers, interfaces with methods, maps whose keys are neither texts
// nor integers. So are types that encode themselves, unless [As] says how.
package schema
