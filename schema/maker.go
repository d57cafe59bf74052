package schema

import (
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"
)

// schemaBuilder makes the schema of one type.
type schemaBuilder struct {
	own    map[reflect.Type]string // schemas provided by the program
	typ    reflect.Type
	output bool // the schema is for encoded values; otherwise for decoded ones

	path []string // to the present part of typ

	defs  jsonschema.Definitions  // shared schemas by name
	names map[reflect.Type]string // of the types in defs
	uses  map[string]int          // number of references to a name
}

func newMaker(own map[reflect.Type]string, t reflect.Type, output bool) *schemaBuilder {
	return &schemaBuilder{
		own: own, typ: t, output: output,
		defs: jsonschema.Definitions{}, names: map[reflect.Type]string{}, uses: map[string]int{},
	}
}

// root returns the complete schema.
func (m *schemaBuilder) root() (*jsonschema.Schema, error) {
	s, err := m.part(m.typ)
	if err != nil {
		return nil, err
	}
	if name, ok := m.names[m.typ]; ok && m.uses[name] == 1 {
		s = m.defs[name] // nothing else refers to it
		delete(m.defs, name)
	}
	s.Definitions = m.defs
	return s, nil
}

// part returns the schema of a type as a part of a larger one.
func (m *schemaBuilder) part(t reflect.Type) (*jsonschema.Schema, error) {
	to, pointed, err := m.pointedTo(t)
	if err != nil {
		return nil, err
	}
	s, err := m.value(to)
	if _, given := m.own[to]; err == nil && pointed && (given || m.output) {
		s = orNull(s) // every other decoded schema allows null already
	}
	return s, err
}

// pointedTo returns the type that t points to, through any number of pointers, and whether t is a
// pointer.
func (m *schemaBuilder) pointedTo(t reflect.Type) (to reflect.Type, pointed bool, err error) {
	to = t
	for range 100 { // a type can point to itself
		if to.Kind() != reflect.Pointer {
			return to, to != t, nil
		}
		to = to.Elem()
	}
	return nil, true, m.failed(t, "points to pointers without end", "carry a value")
}

// value returns the schema of a type that is no pointer.
func (m *schemaBuilder) value(t reflect.Type) (*jsonschema.Schema, error) {
	if text, ok := m.own[t]; ok {
		return m.given(t, text)
	}
	if s, err := m.special(t); s != nil || err != nil {
		return s, err
	}
	if t.Name() != "" && isComposed(t.Kind()) {
		return m.named(t)
	}
	return m.kind(t)
}

// isComposed reports whether types of a kind have parts, and may thus contain themselves.
func isComposed(k reflect.Kind) bool {
	return k == reflect.Struct || k == reflect.Slice || k == reflect.Array || k == reflect.Map
}

// named returns a reference to the schema of a named type.
func (m *schemaBuilder) named(t reflect.Type) (*jsonschema.Schema, error) {
	base, _, _ := strings.Cut(t.Name(), "[") // without type arguments
	return m.shared(t, base, func() (*jsonschema.Schema, error) { return m.kind(t) })
}

// shared returns a reference to the schema of t, which make returns. The schema is stored in defs
// under the name base, or a similar one.
func (m *schemaBuilder) shared(t reflect.Type, base string, make func() (*jsonschema.Schema, error)) (*jsonschema.Schema, error) {
	name, ok := m.names[t]
	if !ok {
		name = m.freeName(base)
		m.names[t], m.defs[name] = name, nil // so that parts of t can refer to it
		s, err := make()
		if err != nil {
			return nil, err
		}
		m.defs[name] = s
	}
	m.uses[name]++
	return &jsonschema.Schema{Ref: "#/$defs/" + url.PathEscape(name)}, nil
}

// freeName returns base, with a number appended if defs already has that name.
func (m *schemaBuilder) freeName(base string) string {
	name := base
	for n := 2; ; n++ {
		if _, taken := m.defs[name]; !taken {
			return name
		}
		name = base + strconv.Itoa(n)
	}
}

// within calls make with name added to the path.
func (m *schemaBuilder) within(name string, make func() (*jsonschema.Schema, error)) (*jsonschema.Schema, error) {
	m.path = append(m.path, name)
	defer func() { m.path = m.path[:len(m.path)-1] }()
	return make()
}

// failed returns the error for the present part, of type t.
func (m *schemaBuilder) failed(t reflect.Type, reason, wayOut string) error {
	return &Error{Type: m.typ, Path: strings.Join(m.path, ""), Part: t, Reason: reason, WayOut: wayOut}
}
