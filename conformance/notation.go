package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fxamacker/cbor/v2"
)

// longest is the maximum number of bytes of a string in a report.
const longest = 24

var (
	encoding = must(cbor.CoreDetEncOptions().EncMode())
	decoding = must(cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden,
		IntDec: cbor.IntDecConvertSignedOrFail, DefaultMapType: nil, MaxNestedLevels: 16,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// decode returns the content of a frame: nil, bool, int64, []byte, string, []any and map[any]any.
// It has to be in the one encoding that the protocol allows.
func decode(frame []byte) ([]any, error) {
	var v any
	if err := decoding.Unmarshal(frame, &v); err != nil {
		return nil, fmt.Errorf("a frame that is no CBOR: %w: %x", err, cut(frame))
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("a frame that is no array: %s", show(v))
	}
	if again, err := encoding.Marshal(v); err != nil || !bytes.Equal(again, frame) {
		return nil, fmt.Errorf("a frame that is not encoded as section 3 asks for: %x", cut(frame))
	}
	return list, nil
}

func cut(b []byte) []byte { return b[:min(len(b), 64)] }

// value returns the value of the notation of spec/scenarios.md, with the values of names.
func value(v any, names map[string]any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		return v.Int64()
	case string:
		return textual(v, names)
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			var err error
			if list[i], err = value(e, names); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		return object(v, names)
	}
	return v, nil // true, false, null
}

// textual returns the value of a text of the notation.
func textual(s string, names map[string]any) (any, error) {
	if e, ok := strings.CutPrefix(s, "="); ok {
		return calculate(e, names)
	}
	if name, ok := strings.CutPrefix(s, "$"); ok {
		v, ok := names[name]
		if !ok {
			return nil, fmt.Errorf("$%s has no value", name)
		}
		return v, nil
	}
	if id, ok := strings.CutPrefix(s, "pipe "); ok {
		return calculate("own + "+id, names)
	}
	if h, ok := strings.CutPrefix(s, "h'"); ok {
		return hex.DecodeString(strings.ReplaceAll(strings.TrimSuffix(h, "'"), " ", ""))
	}
	return s, nil
}

// object returns the value of an object: a map, or bytes from a builder.
func object(o map[string]any, names map[string]any) (any, error) {
	for key, build := range builders {
		if arg, ok := o[key]; ok {
			return build(arg, o, names)
		}
	}
	m := map[any]any{}
	for k, v := range o {
		var key any = k
		if n, err := strconv.ParseInt(k, 10, 64); err == nil {
			key = n
		}
		var err error
		if m[key], err = value(v, names); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// builders are the objects for bytes. The map is filled by init, because builders use object.
var builders map[string]func(arg any, o, names map[string]any) (any, error)

func init() {
	builders = map[string]func(arg any, o, names map[string]any) (any, error){
		"cbor":  encoded,
		"frame": encoded,
		"bytes": func(arg any, _, names map[string]any) (any, error) {
			n, err := number(arg, names)
			return bytes.Repeat([]byte("a"), int(max(n, 0))), err
		},
		"text": func(arg any, _, names map[string]any) (any, error) {
			n, err := number(arg, names)
			if err != nil {
				return nil, err
			}
			return textOf(int(n))
		},
		"random": func(arg any, _, names map[string]any) (any, error) {
			n, err := number(arg, names)
			b := make([]byte, max(n, 0))
			rand.Read(b)
			return b, err
		},
		"concat": func(arg any, _, names map[string]any) (any, error) {
			v, err := value(arg, names)
			var all []byte
			for _, e := range asList(v) {
				b, _ := e.([]byte)
				all = append(all, b...)
			}
			return all, err
		},
		"slice": slice,
		"join": func(arg any, _, names map[string]any) (any, error) {
			v, err := value(arg, names)
			var text string
			for _, e := range asList(v) {
				text += fmt.Sprint(e)
			}
			return text, err
		},
	}
}

func encoded(arg any, _, names map[string]any) (any, error) {
	v, err := value(arg, names)
	if err != nil {
		return nil, err
	}
	return encoding.Marshal(v)
}

// textOf returns the encoding of a text of letters, with n bytes in total.
func textOf(n int) ([]byte, error) {
	for head := 1; head <= 5 && head <= n; head++ {
		if b, err := encoding.Marshal(strings.Repeat("a", n-head)); err != nil || len(b) == n {
			return b, err
		}
	}
	return nil, fmt.Errorf("no text has an encoding of %d bytes", n)
}

// slice returns a part of a byte string, from "from" up to "to".
func slice(arg any, o, names map[string]any) (any, error) {
	v, err := value(arg, names)
	if err != nil {
		return nil, err
	}
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("slice of %s, which is no byte string", show(v))
	}
	from, to := int64(0), int64(len(b))
	if o["from"] != nil {
		if from, err = number(o["from"], names); err != nil {
			return nil, err
		}
	}
	if o["to"] != nil {
		if to, err = number(o["to"], names); err != nil {
			return nil, err
		}
	}
	if from < 0 || from > to || to > int64(len(b)) {
		return nil, fmt.Errorf("slice from %d to %d of %d bytes", from, to, len(b))
	}
	return b[from:to], nil
}

// number returns the value of v, which has to be an integer.
func number(v any, names map[string]any) (int64, error) {
	v, err := value(v, names)
	if err != nil {
		return 0, err
	}
	n, ok := v.(int64)
	if !ok {
		return 0, fmt.Errorf("%s is no integer", show(v))
	}
	return n, nil
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

// show returns the notation of a value, truncated for a report.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case []byte:
		if len(v) > longest {
			return fmt.Sprintf("h'%x…' (%d bytes)", v[:longest], len(v))
		}
		return fmt.Sprintf("h'%x'", v)
	case string:
		if len(v) > 4*longest {
			return fmt.Sprintf("%q… (%d bytes)", v[:4*longest], len(v))
		}
		return strconv.Quote(v)
	case []any:
		list := make([]string, len(v))
		for i, e := range v {
			list[i] = show(e)
		}
		return "[" + strings.Join(list, ", ") + "]"
	case map[any]any:
		var list []string
		for k, e := range v {
			list = append(list, show(k)+": "+show(e))
		}
		slices.Sort(list)
		return "{" + strings.Join(list, ", ") + "}"
	case map[string]any: // of a pattern
		var list []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			list = append(list, k+": "+show(v[k]))
		}
		return "{" + strings.Join(list, ", ") + "}"
	}
	return fmt.Sprint(v)
}
