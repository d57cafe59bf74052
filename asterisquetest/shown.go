package asterisquetest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/asterisque-go/asterisque/codec"
)

// mostShown is how many bytes of a value an error text shows.
const mostShown = 400

// shown returns a readable form of encoded bytes, as far as possible without their type.
func shown(raw []byte) string {
	var v any
	switch {
	case len(raw) == 0:
		return "no bytes"
	case raw[0] == '{' && json.Valid(raw), raw[0] == '"' && json.Valid(raw):
		return short(string(raw))
	case codec.CBOR.Decode(raw, &v) == nil:
		return valueShown(v)
	}
	return valueShown(raw)
}

// valueShown returns a value in readable form.
func valueShown(v any) string {
	switch v.(type) {
	case string, []byte:
		return short(fmt.Sprintf("%q", v))
	}
	return short(fmt.Sprintf("%+v", v))
}

// short returns s, or its beginning.
func short(s string) string {
	if len(s) <= mostShown {
		return s
	}
	return strings.ToValidUTF8(s[:mostShown], "") + fmt.Sprintf("… (%d bytes)", len(s))
}

// value returns a value, or bytes in its place, in readable form.
func value(v any, raw []byte) string {
	if raw != nil {
		return shown(raw)
	}
	return valueShown(v)
}

// as returns v as a T, and false if it is none. A nil matches a T that is an interface.
func as[T any](v any) (t T, ok bool) {
	if v == nil {
		return t, reflect.TypeFor[T]().Kind() == reflect.Interface
	}
	t, ok = v.(T)
	return t, ok
}
