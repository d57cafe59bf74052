package classic

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/truncate"
)

// encoder appends values. After the first error its output is undefined.
type encoder struct {
	form form
	b    []byte
	err  error
	path string // from the value to the place of the error
}

func (e *encoder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// failedWithin reports whether there is an error, and adds a part of this name to its path.
func (e *encoder) failedWithin(name func() string) bool {
	if e.err != nil {
		e.path = truncate.Path(name(), e.path)
	}
	return e.err != nil
}

// failure returns the error with its place.
func (e *encoder) failure() error {
	if e.path == "" {
		return e.err
	}
	switch err := e.err.(type) {
	case *codec.TypeError:
		err.Within(e.path)
	case *codec.ValueError:
		err.Reason = "at " + e.path + ": " + err.Reason
	case *codec.Abort:
		return codec.ErrTooLarge.Withf("at %s: %s", e.path, err.Message)
	}
	return e.err
}

func among(i int) func() string { return func() string { return fmt.Sprintf("[%d]", i) } }

// tooLarge fails because n exceeds the limit of the format.
func (e *encoder) tooLarge(what string, n, limit int) {
	e.fail(codec.ErrTooLarge.Withf("%s of %d exceeds the %d that the classic format can hold", what, n, limit))
}

// value appends v, which stands depth deep.
func (e *encoder) value(v reflect.Value, depth int) {
	if depth > MaxDepth {
		e.fail(codec.ErrTooLarge.Withf("values nested deeper than %d, perhaps without end", MaxDepth))
	}
	if e.err != nil {
		return
	}
	switch v.Kind() {
	case reflect.Invalid:
		e.b = append(e.b, nullTag)
	case reflect.Interface:
		e.value(v.Elem(), depth) // of nil: Invalid
	case reflect.Pointer:
		e.value(v.Elem(), depth+1) // likewise
	case reflect.Bool:
		if v.Bool() {
			e.b = append(e.b, trueTag)
		} else {
			e.b = append(e.b, falseTag)
		}
	case reflect.String:
		e.string(v.String())
	case reflect.Slice, reflect.Array:
		e.sequence(v, depth)
	case reflect.Map:
		e.mapping(v, depth)
	case reflect.Struct:
		e.structure(v, depth)
	default:
		e.number(v)
	}
}

// number appends v. Its kind determines the type, not its magnitude.
func (e *encoder) number(v reflect.Value) {
	switch v.Kind() {
	case reflect.Int8:
		e.integer(int8Tag, v.Int())
	case reflect.Int16:
		e.integer(int16Tag, v.Int())
	case reflect.Int32:
		e.integer(int32Tag, v.Int())
	case reflect.Int, reflect.Int64:
		e.integer(int64Tag, v.Int())
	case reflect.Uint8:
		e.integer(int16Tag, int64(v.Uint()))
	case reflect.Uint16:
		e.integer(int32Tag, int64(v.Uint()))
	case reflect.Uint32:
		e.integer(int64Tag, int64(v.Uint()))
	case reflect.Uint, reflect.Uint64:
		if v.Uint() > math.MaxInt64 {
			e.fail(codec.ErrTooLarge.Withf("the number %d exceeds the %d that the classic format can hold", v.Uint(), int64(math.MaxInt64)))
		}
		e.integer(int64Tag, int64(v.Uint()))
	case reflect.Float32:
		e.b = e.form.appendFloat(append(e.b, float32Tag), uint64(float32Bits(v)), 4)
	case reflect.Float64:
		e.b = e.form.appendFloat(append(e.b, float64Tag), math.Float64bits(v.Float()), 8)
	default:
		e.unsupported(v.Type())
	}
}

func (e *encoder) integer(tag byte, n int64) {
	e.b = e.form.appendInteger(append(e.b, tag), n, widths[tag])
}

// float32Bits keeps the bits of a NaN, which a conversion to float64 and back would change.
func float32Bits(v reflect.Value) uint32 {
	if f, ok := v.Interface().(float32); ok {
		return math.Float32bits(f)
	}
	return math.Float32bits(float32(v.Float()))
}

func (e *encoder) unsupported(t reflect.Type) {
	e.fail(&codec.TypeError{
		Want: "a value that the classic format can hold", Got: "another one", Err: fmt.Errorf("it has none for %v", t),
	})
}

func (e *encoder) string(s string) {
	switch {
	case !utf8.ValidString(s):
		e.fail(&codec.ValueError{Reason: "a text is not UTF-8", Err: fmt.Errorf("%.64q", s)})
	case len(s) > MaxString:
		e.tooLarge("string", len(s), MaxString)
	default:
		e.b = appendRaw(append(e.b, stringTag), e.form, s)
	}
}

// sequence appends a slice or an array, which is a uuid, a binary, a map or a list.
func (e *encoder) sequence(v reflect.Value, depth int) {
	switch {
	case isUUID(v.Type()):
		var u UUID
		appendBytes(u[:0], v)
		e.b = e.form.appendUUID(append(e.b, uuidTag), u)
	case v.Type() == mapType:
		e.entries(v, depth)
	case v.Type().Elem().Kind() != reflect.Uint8:
		e.elements(listTag, v, depth)
	case v.Len() > MaxString:
		e.tooLarge("binary", v.Len(), MaxString)
	default:
		e.b = appendBytes(e.form.appendLength(append(e.b, binaryTag), v.Len()), v)
	}
}

// appendBytes appends the elements of v, a slice or an array of bytes.
func appendBytes(dst []byte, v reflect.Value) []byte {
	if v.Kind() == reflect.Slice || v.CanAddr() {
		return append(dst, v.Bytes()...)
	}
	for i := range v.Len() {
		dst = append(dst, byte(v.Index(i).Uint()))
	}
	return dst
}

// elements appends a tag, and the elements of v behind their number.
func (e *encoder) elements(tag byte, v reflect.Value, depth int) {
	if !e.counted(tag, "list", v.Len()) {
		return
	}
	for i := range v.Len() {
		if e.value(v.Index(i), depth+1); e.err != nil {
			e.failedWithin(among(i))
			return
		}
	}
}

// counted appends a tag and the number of the items behind it, unless there are too many.
func (e *encoder) counted(tag byte, what string, n int) bool {
	if n > MaxCount {
		e.tooLarge(what, n, MaxCount)
		return false
	}
	e.b = appendCount(append(e.b, tag), e.form, uint16(n))
	return true
}

// entries appends a Map.
func (e *encoder) entries(v reflect.Value, depth int) {
	if !e.counted(mapTag, "map", v.Len()) {
		return
	}
	for i := range v.Len() {
		key := v.Index(i).Field(0)
		e.value(key, depth+1)
		e.value(v.Index(i).Field(1), depth+1)
		if e.failedWithin(func() string { return nameOf(key.Elem(), i) }) {
			return
		}
	}
}

// mapping appends a Go map. The entries are ordered by their encoded keys, so that equal maps have
// equal bytes.
func (e *encoder) mapping(v reflect.Value, depth int) {
	if !e.counted(mapTag, "map", v.Len()) {
		return
	}
	type entry struct {
		key, value reflect.Value
		encoded    []byte
	}
	var entries []entry
	for i := v.MapRange(); i.Next(); {
		k := encoder{form: e.form}
		k.value(i.Key(), depth+1)
		if k.err != nil {
			e.err, e.path = k.err, k.path
			e.failedWithin(func() string { return nameOf(i.Key(), len(entries)) })
			return
		}
		entries = append(entries, entry{i.Key(), i.Value(), k.b})
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.encoded, b.encoded) })
	for i, n := range entries {
		if i > 0 && bytes.Equal(n.encoded, entries[i-1].encoded) {
			e.fail(&codec.ValueError{Reason: "two keys of a map are one to the peer"})
		}
		e.b = append(e.b, n.encoded...)
		e.value(n.value, depth+1)
		if e.failedWithin(func() string { return nameOf(n.key, i) }) {
			return
		}
	}
}

// structure appends a struct.
func (e *encoder) structure(v reflect.Value, depth int) {
	if v.Type() == structType {
		s := v.Interface().(Struct)
		e.fieldsOf(s.Schema, len(s.Fields), func(i int) reflect.Value { return reflect.ValueOf(s.Fields[i]) }, depth, among)
		return
	}
	schema, index := fields(v.Type())
	switch {
	case v.NumField() == 0:
		e.b = append(e.b, nullTag)
		return
	case len(index) == 0 && schema == "":
		e.unsupported(v.Type()) // it would be only its name
		return
	}
	e.fieldsOf(schema, len(index), func(i int) reflect.Value { return v.Field(index[i]) }, depth, func(i int) func() string {
		return func() string { return "." + v.Type().Field(index[i]).Name }
	})
}

func (e *encoder) fieldsOf(schema string, n int, field func(i int) reflect.Value, depth int, name func(int) func() string) {
	switch {
	case !utf8.ValidString(schema):
		e.fail(&codec.ValueError{Reason: "a schema is not UTF-8", Err: fmt.Errorf("%.64q", schema)})
		return
	case n > MaxFields:
		e.tooLarge("struct with a number of fields", n, MaxFields)
		return
	case len(schema) > MaxString:
		e.tooLarge("schema", len(schema), MaxString)
		return
	}
	e.b = appendFields(appendRaw(append(e.b, structTag), e.form, schema), e.form, uint8(n))
	for i := range n {
		if e.value(field(i), depth+1); e.err != nil {
			e.failedWithin(name(i))
			return
		}
	}
}
