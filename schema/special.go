package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/invopop/jsonschema"
)

// special returns the schema of a type that is not encoded by its kind, or nil.
func (m *schemaBuilder) special(t reflect.Type) (*jsonschema.Schema, error) {
	switch t {
	case reflect.TypeFor[time.Time]():
		return m.time()
	case reflect.TypeFor[big.Int]():
		if m.output {
			return typed(true, "integer"), nil
		}
		return typed(false, "integer", "object"), nil // also a struct without fields
	case reflect.TypeFor[cbor.RawMessage]():
		return new(jsonschema.Schema), nil
	case reflect.TypeFor[cbor.ByteString]():
		return m.encoded(typed(m.output, "string")), nil
	case reflect.TypeFor[cbor.Tag](), reflect.TypeFor[cbor.RawTag](), reflect.TypeFor[cbor.SimpleValue]():
		return nil, m.failed(t, "has no form in JSON", "carry its content")
	}
	if method := m.ownMethod(t); method != "" {
		return nil, m.failed(t, "has a form of its own, of "+method, fmt.Sprintf("say which one with schema.As[%v]", t))
	}
	return nil, nil
}

// ownMethod returns the name of the method by which a type encodes or decodes itself, or "".
func (m *schemaBuilder) ownMethod(t reflect.Type) string {
	p := reflect.PointerTo(t)
	for _, own := range []struct {
		output bool
		method string
		of     reflect.Type
	}{
		{true, "MarshalCBOR", reflect.TypeFor[cbor.Marshaler]()},
		{true, "MarshalBinary", reflect.TypeFor[encoding.BinaryMarshaler]()},
		{false, "UnmarshalCBOR", reflect.TypeFor[cbor.Unmarshaler]()},
		{false, "UnmarshalBinary", reflect.TypeFor[encoding.BinaryUnmarshaler]()},
	} {
		if own.output == m.output && p.Implements(own.of) {
			return own.method
		}
	}
	return ""
}

// given returns the schema that the program has provided.
func (m *schemaBuilder) given(t reflect.Type, text string) (*jsonschema.Schema, error) {
	s := new(jsonschema.Schema)
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&s.Extras); err != nil || s.Extras == nil || d.More() {
		return nil, m.failed(t, "was given a schema that is no JSON object", "correct that of schema.As")
	}
	delete(s.Extras, "$schema") // only the root has it
	return s, nil
}

// base64Text is the pattern of a byte string in JSON.
const base64Text = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"

// encoded makes the strings of s represent byte strings.
func (m *schemaBuilder) encoded(s *jsonschema.Schema) *jsonschema.Schema {
	s.ContentEncoding = "base64"
	if !m.output {
		s.Pattern = base64Text
	}
	return s
}

// bytes returns the schema of bytes. list is the schema of the same type as a list.
func (m *schemaBuilder) bytes(t reflect.Type, list *jsonschema.Schema) *jsonschema.Schema {
	switch {
	case !m.output: // a CBOR array of integers is accepted as well
		setTypes(list, []string{"string", "array", "null"})
		return m.encoded(list)
	case t.Kind() == reflect.Slice:
		return m.encoded(typed(false, "string"))
	}
	s := m.encoded(typed(true, "string"))
	s.MinLength = count((t.Len() + 2) / 3 * 4)
	s.MaxLength = s.MinLength
	return s
}

// dateTime is the pattern of texts that decode as a time. It allows slightly more than RFC 3339: Go
// accepts an hour of one digit, a comma, and offsets of 24 hours and of 60 minutes.
const dateTime = "^(" + commonDay + "|" + leapDay + ")T([01]?[0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.,][0-9]+)?" +
	"(Z|[+-]([01][0-9]|2[0-4]):([0-5][0-9]|60))$"

const (
	commonDay = "[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
	leapDay   = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29"
)

// time returns the schema of a time.Time. Decoding also accepts seconds since 1970. The zero time
// is null.
func (m *schemaBuilder) time() (*jsonschema.Schema, error) {
	if m.output {
		s := typed(false, "string")
		s.Format = "date-time"
		return s, nil
	}
	return m.shared(reflect.TypeFor[time.Time](), "time", func() (*jsonschema.Schema, error) {
		s := typed(false, "string", "integer", "number")
		s.Format, s.Pattern = "date-time", dateTime
		least, most := bounds(reflect.TypeFor[int64]())
		s.Minimum, s.Maximum = json.Number(least), json.Number(most)
		return s, nil
	})
}
