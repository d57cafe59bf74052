package codec

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/asterisque-go/asterisque/internal/cborhead"
)

// The paths of CBOR without reflection. They handle only values that they encode and decode exactly
// as the library behind CBOR does, and leave all other values, and all errors, to it.

const float64Head = cborhead.Other | 27

// appendPlain appends v if it is of one of the plain types or a pointer to one.
func appendPlain(dst []byte, v any) (_ []byte, ok bool) {
	switch v := v.(type) {
	case string:
		return appendText(dst, v)
	case []byte:
		if v == nil {
			return append(dst, cborhead.Null), true
		}
		return cborhead.AppendBytes(dst, v), true
	case bool:
		if v {
			return append(dst, cborhead.True), true
		}
		return append(dst, cborhead.False), true
	case int:
		return cborhead.AppendInt(dst, int64(v)), true
	case int64:
		return cborhead.AppendInt(dst, v), true
	case uint64:
		return cborhead.AppendUint(dst, v), true
	case float64:
		return appendFloat(dst, v)
	default:
		return appendPointer(dst, v)
	}
}

// appendText leaves a text that is not UTF-8 to the check of all values, which names its place.
func appendText(dst []byte, s string) (_ []byte, ok bool) {
	if !utf8.ValidString(s) {
		return dst, false
	}
	return cborhead.AppendText(dst, s), true
}

// appendFloat leaves NaN and infinities, which have a shorter form, to the library.
func appendFloat(dst []byte, f float64) (_ []byte, ok bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, false
	}
	return binary.BigEndian.AppendUint64(append(dst, float64Head), math.Float64bits(f)), true
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
		if v != nil && *v != nil {
			return cborhead.AppendBytes(dst, *v), true
		}
	case *bool:
		if v != nil {
			return appendPlain(dst, *v) // a bool needs no memory in an interface
		}
	case *int:
		if v != nil {
			return cborhead.AppendInt(dst, int64(*v)), true
		}
	case *int64:
		if v != nil {
			return cborhead.AppendInt(dst, *v), true
		}
	case *uint64:
		if v != nil {
			return cborhead.AppendUint(dst, *v), true
		}
	case *float64:
		if v != nil {
			return appendFloat(dst, *v)
		}
	}
	return dst, false
}

// decodePlain decodes data if v points to one of the plain types and data holds exactly one in the
// shortest form.
func decodePlain(data []byte, v any) (ok bool) {
	switch v := v.(type) {
	case *string:
		s, ok := plainString(data, cborhead.Text)
		if ok = ok && v != nil && utf8.Valid(s); ok {
			*v = string(s)
		}
		return ok
	case *[]byte:
		b, ok := plainString(data, cborhead.Bytes)
		if ok = ok && v != nil; ok {
			*v = bytes.Clone(b)
		}
		return ok
	case *bool:
		if ok = v != nil && len(data) == 1 && (data[0] == cborhead.True || data[0] == cborhead.False); ok {
			*v = data[0] == cborhead.True
		}
		return ok
	case *float64:
		if ok = v != nil && len(data) == 9 && data[0] == float64Head; ok {
			*v = math.Float64frombits(binary.BigEndian.Uint64(data[1:]))
		}
		return ok
	default:
		return decodePlainInt(data, v)
	}
}

func decodePlainInt(data []byte, v any) (ok bool) {
	switch v := v.(type) {
	case *int:
		n, ok := plainInt(data)
		if ok = ok && v != nil && int64(int(n)) == n; ok {
			*v = int(n)
		}
		return ok
	case *int64:
		n, ok := plainInt(data)
		if ok = ok && v != nil; ok {
			*v = n
		}
		return ok
	case *uint64:
		major, n, ok := plainHead(data)
		if ok = ok && v != nil && major == cborhead.Unsigned; ok {
			*v = n
		}
		return ok
	}
	return false
}

// plainHead returns the head that is all of data.
func plainHead(data []byte) (major byte, n uint64, ok bool) {
	r := cborhead.Reader{Data: data}
	major, n = r.Head()
	return major, n, r.Err == nil && r.At == len(data)
}

func plainInt(data []byte) (n int64, ok bool) {
	major, u, ok := plainHead(data)
	if !ok || u > math.MaxInt64 || major > cborhead.Negative {
		return 0, false
	}
	if major == cborhead.Negative {
		return ^int64(u), true
	}
	return int64(u), true
}

// plainString returns the content of the string that is all of data.
func plainString(data []byte, want byte) (s []byte, ok bool) {
	r := cborhead.Reader{Data: data}
	major, n := r.Head()
	if r.Err != nil || major != want || n != uint64(len(data)-r.At) {
		return nil, false
	}
	return data[r.At:], true
}
