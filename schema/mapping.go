package schema

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"
)

// keyword marks a property with an integer name in CBOR, or with propertyNames all properties.
const keyword = "x-cbor-key"

// mapping returns the schema of a map.
func (m *schemaBuilder) mapping(t reflect.Type) (*jsonschema.Schema, error) {
	names, err := m.within("[key]", func() (*jsonschema.Schema, error) { return m.keys(t.Key()) })
	if err != nil {
		return nil, err
	}
	elem, err := m.within("[]", func() (*jsonschema.Schema, error) { return m.part(t.Elem()) })
	if err != nil {
		return nil, err
	}
	s := typed(false, "object") // a nil map is null
	s.PropertyNames, s.AdditionalProperties = names, elem
	return s, nil
}

// keys returns the schema of the keys of a map, or nil if any text is valid.
func (m *schemaBuilder) keys(t reflect.Type) (*jsonschema.Schema, error) {
	if s, err := m.special(t); s != nil || err != nil {
		if err == nil {
			err = m.notAKey(t)
		}
		return nil, err
	}
	switch t.Kind() {
	case reflect.String:
		return nil, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s := &jsonschema.Schema{Pattern: between(bounds(t))}
		setExtra(s, keyword, "integer")
		return s, nil
	}
	return nil, m.notAKey(t)
}

func (m *schemaBuilder) notAKey(t reflect.Type) error {
	return m.failed(t, "is the key of a map, and no name in JSON", "use keys that are texts or integers")
}

// between returns a pattern for the integers from least, which is at most 0, to most.
func between(least, most string) string {
	alternatives := append([]string{"0"}, upTo(most)...)
	if below, ok := strings.CutPrefix(least, "-"); ok {
		alternatives = append(alternatives, "-("+strings.Join(upTo(below), "|")+")")
	}
	return "^(" + strings.Join(alternatives, "|") + ")$"
}

// upTo returns patterns for the integers from 1 to most.
func upTo(most string) (alternatives []string) {
	digits := func(n int) string {
		if n == 0 {
			return ""
		}
		return "[0-9]{" + strconv.Itoa(n) + "}"
	}
	if rest := len(most) - 2; rest >= 0 { // integers with fewer digits
		alternatives = append(alternatives, "[1-9][0-9]{0,"+strconv.Itoa(rest)+"}")
	}
	for i := range most { // integers equal to most before digit i, and lower there
		first, last := byte('0'), most[i]-1
		if i == 0 {
			first = '1'
		}
		if first <= last {
			alternatives = append(alternatives, most[:i]+"["+string(first)+"-"+string(last)+"]"+digits(len(most)-i-1))
		}
	}
	return append(alternatives, most)
}
