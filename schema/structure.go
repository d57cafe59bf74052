package schema

import (
	"reflect"

	"github.com/invopop/jsonschema"
)

// structure returns the schema of a struct.
func (m *schemaBuilder) structure(t reflect.Type) (*jsonschema.Schema, error) {
	fields, isList, err := m.fields(t)
	if err != nil {
		return nil, err
	}
	s := typed(m.output, "object")
	if isList {
		s = typed(m.output, "array")
		s.MinItems, s.MaxItems = count(len(fields)), count(len(fields))
	} else {
		s.Properties = jsonschema.NewProperties()
	}
	if blank, ok := t.FieldByName("_"); ok {
		s.Description = blank.Tag.Get(docTag)
	}
	for _, f := range fields {
		of, err := m.within("."+f.goName, func() (*jsonschema.Schema, error) { return m.field(&f) })
		switch {
		case err != nil:
			return nil, err
		case isList:
			s.PrefixItems = append(s.PrefixItems, of)
			continue
		}
		s.Properties.Set(f.name, of)
		if m.output && !f.optional {
			s.Required = append(s.Required, f.name)
		}
	}
	return s, nil
}

// docTag is the tag of a field with its description.
const docTag = "doc"

// field returns the schema of a field.
func (m *schemaBuilder) field(f *structField) (*jsonschema.Schema, error) {
	if f.unset && !m.output {
		return nil, m.failed(f.typ, "is a field of an embedded struct that the codec cannot allocate, because its type is not exported",
			"export the type, or embed it without a pointer")
	}
	s, err := m.part(f.typ)
	if err != nil {
		return nil, err
	}
	if s.Description = f.doc; f.doc != "" {
		delete(s.Extras, "description") // which the program has provided with a schema
	}
	if f.isNumber {
		setExtra(s, keyword, "integer")
	}
	return s, nil
}
