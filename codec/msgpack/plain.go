package msgpack

import (
	"bytes"
	"math"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"
)

// The paths without reflection. All other values, and all errors, are left to the paths with
// reflection.

func appendNil(dst []byte) []byte { return msgp.AppendNil(dst) }

// appendInt appends n in the shortest form, as an unsigned integer if possible.
func appendInt(dst []byte, n int64) []byte {
	if n >= 0 {
		return msgp.AppendUint64(dst, uint64(n))
	}
	return msgp.AppendInt64(dst, n)
}

func appendText(dst []byte, s string) ([]byte, bool) {
	if !utf8.ValidString(s) || fits(len(s)) != nil {
		return dst, false
	}
	return msgp.AppendString(dst, s), true
}

func appendBytes(dst, b []byte) ([]byte, bool) {
	switch {
	case b == nil:
		return appendNil(dst), true
	case fits(len(b)) != nil:
		return dst, false
	}
	return msgp.AppendBytes(dst, b), true
}

// fits returns an error if n exceeds the largest length.
func fits(n int) error {
	if uint64(n) > math.MaxUint32 {
		return reason("something is longer than MessagePack can say")
	}
	return nil
}

// appendPlain appends v if it is of one of the plain types or a pointer to one.
func appendPlain(dst []byte, v any) (_ []byte, ok bool) {
	switch v := v.(type) {
	case string:
		return appendText(dst, v)
	case []byte:
		return appendBytes(dst, v)
	case bool:
		return msgp.AppendBool(dst, v), true
	case int:
		return appendInt(dst, int64(v)), true
	case int64:
		return appendInt(dst, v), true
	case uint64:
		return msgp.AppendUint64(dst, v), true
	case float64:
		return msgp.AppendFloat64(dst, v), true
	}
	return appendPointer(dst, v)
}

// appendPointer does not call appendPlain, which would move the value into an interface: that
// allocates.
func appendPointer(dst []byte, v any) (_ []byte, ok bool) {
	switch v := v.(type) {
	case *string:
		if v != nil {
			return appendText(dst, *v)
		}
	case *[]byte:
		if v != nil {
			return appendBytes(dst, *v)
		}
	case *bool:
		if v != nil {
			return msgp.AppendBool(dst, *v), true
		}
	case *int:
		if v != nil {
			return appendInt(dst, int64(*v)), true
		}
	case *int64:
		if v != nil {
			return appendInt(dst, *v), true
		}
	case *uint64:
		if v != nil {
			return msgp.AppendUint64(dst, *v), true
		}
	case *float64:
		if v != nil {
			return msgp.AppendFloat64(dst, *v), true
		}
	}
	return dst, false
}

// decodePlain decodes data if v points to one of the plain types and data holds exactly one.
func decodePlain(data []byte, v any) (ok bool) {
	r := itemReader{data: data}
	h := r.peek()
	if h.kind == isMalformed || h.kind == isArray || h.kind == isMap {
		return false
	}
	whole, content := r.item(h)
	if r.at != len(data) {
		return false
	}
	switch v := v.(type) {
	case *string:
		if ok = v != nil && h.kind == isText && utf8.Valid(content); ok {
			*v = string(content)
		}
	case *[]byte:
		if ok = v != nil && h.kind == isBytes; ok {
			*v = bytes.Clone(content)
		}
	case *bool:
		if ok = v != nil && h.kind == isBool; ok {
			*v, _, _ = msgp.ReadBoolBytes(whole)
		}
	case *float64:
		if ok = v != nil && h.kind == isFloat; ok {
			*v, _, _ = msgp.ReadFloat64Bytes(whole)
		}
	default:
		return h.kind == isInteger && decodePlainInteger(whole, v)
	}
	return ok
}

func decodePlainInteger(whole []byte, v any) (ok bool) {
	switch v := v.(type) {
	case *int:
		n, fits := integerOf(whole).signed()
		if ok = v != nil && fits && int64(int(n)) == n; ok {
			*v = int(n)
		}
	case *int64:
		n, fits := integerOf(whole).signed()
		if ok = v != nil && fits; ok {
			*v = n
		}
	case *uint64:
		n, fits := integerOf(whole).unsigned()
		if ok = v != nil && fits; ok {
			*v = n
		}
	}
	return ok
}
