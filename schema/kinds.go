package schema

import (
	"cmp"
	"encoding/json"
	"math"
	"reflect"
	"strconv"

	"github.com/invopop/jsonschema"
)

// kind returns the schema of a type by its kind.
func (m *schemaBuilder) kind(t reflect.Type) (*jsonschema.Schema, error) {
	switch t.Kind() {
	case reflect.Bool:
		return typed(m.output, "boolean"), nil
	case reflect.String:
		return typed(m.output, "string"), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s := typed(m.output, "integer")
		least, most := bounds(t)
		s.Minimum, s.Maximum = json.Number(least), json.Number(most)
		return s, nil
	case reflect.Float32, reflect.Float64:
		return m.float(t), nil
	case reflect.Slice, reflect.Array:
		return m.list(t)
	case reflect.Map:
		return m.mapping(t)
	case reflect.Struct:
		return m.structure(t)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return new(jsonschema.Schema), nil
		}
		return nil, m.failed(t, "is an interface with methods, which no received value can become",
			"carry a struct, any or cbor.RawMessage")
	}
	return nil, m.failed(t, "has no form in CBOR", "carry something else, or leave a field out with the tag `cbor:\"-\"`")
}

// bounds returns the smallest and the largest integer of a type.
func bounds(t reflect.Type) (least, most string) {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n := int64(math.MaxInt64) >> (64 - t.Bits())
		return strconv.FormatInt(^n, 10), strconv.FormatInt(n, 10)
	}
	return "0", strconv.FormatUint(math.MaxUint64>>(64-t.Bits()), 10)
}

func (m *schemaBuilder) float(t reflect.Type) *jsonschema.Schema {
	s := typed(m.output, "number")
	if t.Kind() == reflect.Float32 {
		most := strconv.FormatFloat(math.MaxFloat32, 'g', -1, 64)
		s.Minimum, s.Maximum = json.Number("-"+most), json.Number(most)
	}
	return s
}

// longest is the maximum length of an array type: its schema has one part for each element.
const longest = 4096

// list returns the schema of a slice or an array.
func (m *schemaBuilder) list(t reflect.Type) (*jsonschema.Schema, error) {
	if t.Kind() == reflect.Array && t.Len() > longest {
		return nil, m.failed(t, "has more than "+strconv.Itoa(longest)+" elements", "carry a slice")
	}
	elem, err := m.within("[]", func() (*jsonschema.Schema, error) { return m.part(t.Elem()) })
	if err != nil {
		return nil, err
	}
	s, err := m.elements(t, elem)
	if err == nil && t.Elem().Kind() == reflect.Uint8 {
		s = m.bytes(t, s)
	}
	return s, err
}

// elements returns the schema of a CBOR array with elements of the schema elem.
func (m *schemaBuilder) elements(t reflect.Type, elem *jsonschema.Schema) (*jsonschema.Schema, error) {
	switch {
	case t.Kind() == reflect.Slice:
		s := typed(false, "array") // a nil slice is null
		s.Items = elem
		return s, nil
	case m.output:
		s := typed(true, "array")
		s.Items, s.MinItems, s.MaxItems = elem, count(t.Len()), count(t.Len())
		return s, nil
	}
	if elem.Ref == "" && t.Len() > 1 {
		var err error
		elem, err = m.shared(t.Elem(), cmp.Or(t.Elem().Name(), "element"), func() (*jsonschema.Schema, error) { return elem, nil })
		if err != nil {
			return nil, err
		}
	}
	// missing elements are zero, and excess elements are ignored
	s := typed(false, "array")
	for range t.Len() {
		s.PrefixItems = append(s.PrefixItems, elem)
	}
	return s, nil
}

func count(n int) *uint64 {
	u := uint64(n)
	return &u
}
