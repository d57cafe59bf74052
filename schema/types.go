package schema

import (
	"reflect"

	"github.com/invopop/jsonschema"
)

// typed returns a schema that allows values of these types, and null unless only is true.
func typed(only bool, types ...string) *jsonschema.Schema {
	s := new(jsonschema.Schema)
	if !only {
		types = append(types, "null")
	}
	setTypes(s, types)
	return s
}

// setTypes sets the types of values that s allows. The library's field holds one type only.
func setTypes(s *jsonschema.Schema, types []string) {
	if len(types) == 1 {
		s.Type = types[0]
		return
	}
	s.Type = ""
	setExtra(s, "type", types)
}

func setExtra(s *jsonschema.Schema, key string, value any) {
	if s.Extras == nil {
		s.Extras = make(map[string]any)
	}
	s.Extras[key] = value
}

// orNull returns a schema that allows null in addition to the values of s.
func orNull(s *jsonschema.Schema) *jsonschema.Schema {
	types, several := s.Extras["type"].([]string)
	switch {
	case reflect.DeepEqual(s, new(jsonschema.Schema)): // allows everything
	case s.Type != "":
		setTypes(s, []string{s.Type, "null"})
	case several && types[len(types)-1] == "null":
	default:
		s = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, {Type: "null"}}}
	}
	return s
}
