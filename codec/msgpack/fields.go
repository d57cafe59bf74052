package msgpack

import (
	"reflect"
	"slices"
	"strings"

	"github.com/tinylib/msgp/msgp"

	"github.com/asterisque-go/asterisque/internal/sizing"
)

// structField is one field of a struct, or of a struct that is embedded in it.
type structField struct {
	name                string
	key                 []byte // the name as an item
	place               []int
	plan                *plan
	omitEmpty, omitZero bool
}

// weights has the plans for weighing, and the fields of each struct.
var weights = &sizing.Plans{Rules: sizing.Rules{Kind: weighAs, Field: named}}

// weighAs returns the kind of a type that is weighed differently from its structure.
func weighAs(t reflect.Type) (k sizing.Kind, ok bool) {
	f, ok := special(t, ownReader, binaryReader)
	switch f {
	case asTime:
		return sizing.Time, ok
	case asBig:
		return sizing.Number, ok
	}
	return sizing.Own, ok
}

// named reads the tag of a field.
func named(f reflect.StructField) (n sizing.Name, ok bool) {
	name, _, tagged := tag(f)
	t := f.Type
	if t.Kind() == reflect.Pointer && f.IsExported() { // others cannot be set
		t = t.Elem()
	}
	structure := f.Anonymous && t.Kind() == reflect.Struct
	if name == "-" || !f.IsExported() && !structure {
		return n, false
	}
	if _, own := special(t, ownReader, binaryReader); own {
		structure = false
	}
	n = sizing.Name{Name: name, Tagged: tagged, Embedded: structure && name == ""}
	if name == "" {
		n.Name = f.Name
	}
	return n, true
}

// tag returns the name in the tag of a field, and its options.
func tag(f reflect.StructField) (name string, options []string, tagged bool) {
	text := f.Tag.Get("msgpack")
	if text == "" {
		text = f.Tag.Get("json")
	}
	parts := strings.Split(text, ",")
	return parts[0], parts[1:], parts[0] != ""
}

// structure fills in the fields of the struct of p.
func (b builder) structure(p *plan) {
	rules := sizing.Rules{Field: named, Kind: func(t reflect.Type) (sizing.Kind, bool) {
		if t == p.t { // it may decode or encode itself, and be a struct in the other direction
			return 0, false
		}
		return weighAs(t)
	}}
	found := (&sizing.Plans{Rules: rules}).Of(p.t)
	p.byName, p.always = make(map[string]int), true
	for i, place := range found.Places {
		f, pointed := at(p.t, place)
		_, options, _ := tag(f)
		name := string(found.Names[i])
		p.byName[name] = i
		p.fields = append(p.fields, structField{
			name: name, key: msgp.AppendString(nil, name), place: place, plan: b.plan(f.Type),
			omitEmpty: slices.Contains(options, "omitempty"), omitZero: slices.Contains(options, "omitzero"),
		})
		if last := &p.fields[i]; last.omitEmpty || last.omitZero || pointed {
			p.always = false
		}
	}
}

// at returns the field of t at a place, and whether it is behind a pointer.
func at(t reflect.Type, place []int) (f reflect.StructField, pointed bool) {
	for _, i := range place {
		if t.Kind() == reflect.Pointer {
			t, pointed = t.Elem(), true
		}
		f = t.Field(i)
		t = f.Type
	}
	return f, pointed
}
