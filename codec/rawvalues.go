package codec

import (
	"encoding"
	"fmt"
)

// Raw sends bytes unchanged. Append takes []byte, string, pointers to them and
// encoding.BinaryMarshaler; Decode takes *[]byte, *string and encoding.BinaryUnmarshaler. Every
// other type, and a nil pointer, is a *TypeError.
var Raw Values = rawValues{}

type rawValues struct{}

func (rawValues) Name() string {
	return "raw"
}

func (rawValues) Append(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case []byte:
		return append(dst, v...), nil
	case string:
		return append(dst, v...), nil
	case *[]byte:
		if v != nil {
			return append(dst, *v...), nil
		}
	case *string:
		if v != nil {
			return append(dst, *v...), nil
		}
	case encoding.BinaryMarshaler:
		b, err := v.MarshalBinary()
		if err != nil {
			return dst, &ValueError{Reason: "the value could not be encoded as bytes", Err: fmt.Errorf("%T: %w", v, err)}
		}
		return append(dst, b...), nil
	}
	return dst, &TypeError{
		Want: "bytes or a text", Got: "another value",
		Err: fmt.Errorf("%T is neither []byte, string nor encoding.BinaryMarshaler", v),
	}
}

func (rawValues) Decode(data []byte, v any) error {
	switch v := v.(type) {
	case *[]byte:
		if v != nil {
			*v = append([]byte{}, data...)
			return nil
		}
	case *string:
		if v != nil {
			*v = string(data)
			return nil
		}
	case encoding.BinaryUnmarshaler:
		if err := v.UnmarshalBinary(data); err != nil {
			return &ValueError{Reason: "the bytes do not fit", Err: fmt.Errorf("%T: %w", v, err)}
		}
		return nil
	}
	return &TypeError{Want: "something else", Got: "raw bytes", Err: fmt.Errorf("they cannot be stored in a %T", v)}
}

// Bytes implements Lender.
func (rawValues) Bytes(v any) (encoding []byte, ok bool) {
	if v, ok := v.(*[]byte); ok && v != nil {
		return *v, true
	}
	return nil, false
}

// Keep implements Lender.
func (r rawValues) Keep(data []byte, v any) error {
	if v, ok := v.(*[]byte); ok && v != nil {
		*v = data[:len(data):len(data)]
		return nil
	}
	return r.Decode(data, v)
}
