package schema

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// structField is a struct field that the codec encodes and decodes.
type structField struct {
	name     string // in JSON
	isNumber bool   // the name is an integer in CBOR
	goName   string
	typ      reflect.Type
	doc      string
	optional bool // the encoder may omit it
	unset    bool // it cannot be decoded: it is behind a nil pointer of an unexported type

	index  []int
	tagged bool
}

// embeddedStruct is a struct that promotes its fields to another one.
type embeddedStruct struct {
	t               reflect.Type
	index           []int
	optional, unset bool // as in its fields
}

// fields returns the fields of a struct in the order of the codec, and whether they are encoded as
// a list. Among several fields with one name, the least deep one counts, and among those, the one
// with its name from a tag. Otherwise none counts.
func (m *schemaBuilder) fields(t reflect.Type) (list []structField, isList bool, err error) {
	seen := map[reflect.Type]bool{}
	for level := []embeddedStruct{{t: t}}; len(level) > 0; {
		var next []embeddedStruct
		for _, e := range level {
			if countOf(level, e.t) > 1 || seen[e.t] {
				continue
			}
			seen[e.t] = true
			own, embedded, err := m.ownFields(e)
			if err != nil {
				return nil, false, err
			}
			list, next = append(list, own...), append(next, embedded...)
		}
		level = next
	}
	list = visible(list)
	if blank, ok := t.FieldByName("_"); ok {
		_, options, _ := strings.Cut(blank.Tag.Get("cbor"), ",")
		isList = slices.Contains(strings.Split(options, ","), "toarray")
	}
	if !isList {
		err = m.distinct(t, list)
	}
	return list, isList, err
}

// countOf returns the number of times a type is embedded.
func countOf(in []embeddedStruct, t reflect.Type) (n int) {
	for _, e := range in {
		if e.t == t {
			n++
		}
	}
	return n
}

// ownFields returns the fields of one struct itself, and the structs embedded in it.
func (m *schemaBuilder) ownFields(e embeddedStruct) (own []structField, embedded []embeddedStruct, err error) {
	for i := range e.t.NumField() {
		f := e.t.Field(i)
		to := f.Type
		for to.Kind() == reflect.Pointer {
			to = to.Elem()
		}
		isStruct := f.Anonymous && to.Kind() == reflect.Struct
		tag := cmp.Or(f.Tag.Get("cbor"), f.Tag.Get("json"))
		if tag == "-" || !f.IsExported() && !isStruct {
			continue
		}
		index := append(slices.Clone(e.index), i)
		name, rest, _ := strings.Cut(tag, ",")
		options := strings.Split(rest, ",")
		pointer := f.Type.Kind() == reflect.Pointer
		unset := e.unset || pointer && !f.IsExported()
		if isStruct && name == "" {
			embedded = append(embedded, embeddedStruct{to, index, e.optional || pointer, unset})
			continue
		}
		is := structField{
			name: cmp.Or(name, f.Name), isNumber: slices.Contains(options, "keyasint"), goName: f.Name, typ: f.Type, doc: f.Tag.Get(docTag),
			optional: e.optional || slices.Contains(options, "omitempty") || slices.Contains(options, "omitzero"),
			unset:    unset, index: index, tagged: tag != "",
		}
		if is.isNumber {
			n, err := strconv.Atoi(is.name)
			if err != nil {
				return nil, nil, m.failed(e.t, "has a field "+f.Name+" with the tag keyasint, and "+strconv.Quote(is.name)+" is no integer", "correct the tag")
			}
			is.name = strconv.Itoa(n)
		}
		own = append(own, is)
	}
	return own, embedded, nil
}

// visible returns the fields that are not hidden by another one.
func visible(all []structField) (list []structField) {
	for _, f := range all {
		hidden := slices.ContainsFunc(all, func(g structField) bool {
			same := g.name == f.name && g.isNumber == f.isNumber && !slices.Equal(g.index, f.index)
			return same && (len(g.index) < len(f.index) || len(g.index) == len(f.index) && (g.tagged || !f.tagged))
		})
		if !hidden {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b structField) int { return slices.Compare(a.index, b.index) })
	return list
}

// distinct returns an error if two fields would be the same property.
func (m *schemaBuilder) distinct(t reflect.Type, list []structField) error {
	names := map[string]bool{}
	for _, f := range list {
		if names[f.name] {
			return m.failed(t, "has two fields that are both "+strconv.Quote(f.name)+" in JSON, one of them as an integer", "give one another name")
		}
		names[f.name] = true
	}
	return nil
}
