package schema

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"net/url"
	"regexp"
	"strings"

	"github.com/fxamacker/cbor/v2"
)

// document is a decoded JSON schema.
type document = map[string]any

// converter converts JSON to CBOR, by the rules in the package documentation. It uses only the
// schema.
type converter struct{ defs document }

func newConverter(root document) *converter {
	defs, _ := root["$defs"].(document)
	return &converter{defs}
}

// errNoForm is the error for a JSON value without a form in CBOR.
var errNoForm = errors.New("the value has no form")

// encode returns a JSON value as CBOR.
func (c *converter) encode(schema document, v any) ([]byte, error) {
	made, err := c.value(schema, v)
	if err != nil {
		return nil, err
	}
	return cbor.Marshal(made)
}

// resolve follows references.
func (c *converter) resolve(schema any) document {
	s, _ := schema.(document)
	for s["$ref"] != nil {
		name, err := url.PathUnescape(strings.TrimPrefix(s["$ref"].(string), "#/$defs/"))
		if err != nil {
			panic(err)
		}
		s, _ = c.defs[name].(document)
	}
	return s
}

func (c *converter) value(schema, v any) (any, error) {
	s := c.resolve(schema)
	switch v := v.(type) {
	case json.Number:
		return number(s, v)
	case string:
		switch {
		case s["contentEncoding"] == "base64":
			b, err := base64.StdEncoding.DecodeString(v)
			if err != nil || strings.ContainsAny(v, "\r\n") {
				return nil, errNoForm
			}
			return b, nil
		case s["format"] == "date-time":
			return cbor.Tag{Number: 0, Content: v}, nil
		}
		return v, nil
	case []any:
		return c.list(s, v)
	case document:
		return c.object(s, v)
	}
	return v, nil
}

func (c *converter) list(s document, v []any) (list []any, err error) {
	prefix, _ := s["prefixItems"].([]any)
	list = make([]any, len(v))
	for i, e := range v {
		of := s["items"]
		if i < len(prefix) {
			of = prefix[i]
		}
		if list[i], err = c.value(of, e); err != nil {
			return nil, err
		}
	}
	return list, nil
}

var decimal = regexp.MustCompile("^(0|-?[1-9][0-9]*)$")

func (c *converter) object(s document, v document) (object map[any]any, err error) {
	properties, _ := s["properties"].(document)
	names, _ := s["propertyNames"].(document)
	object = make(map[any]any)
	for name, e := range v {
		of := s["additionalProperties"]
		if properties[name] != nil {
			of = properties[name]
		}
		var key any = name
		own, _ := of.(document)
		if (own[keyword] == "integer" || names[keyword] == "integer") && decimal.MatchString(name) {
			i, _ := new(big.Int).SetString(name, 10)
			if !i.IsInt64() && !i.IsUint64() {
				return nil, errNoForm // keys have at most 64 bits
			}
			if key = i.Int64(); !i.IsInt64() {
				key = i.Uint64()
			}
		}
		if object[key], err = c.value(of, e); err != nil {
			return nil, err
		}
	}
	return object, nil
}

// number returns a number as an integer if it is one, and floating point otherwise. Beyond 64 bits
// it is an integer only if the schema allows integers.
func number(s document, v json.Number) (any, error) {
	if r, ok := new(big.Rat).SetString(string(v)); ok && r.IsInt() {
		i := new(big.Int).Set(r.Num())
		if s["type"] == nil || allows(s, "integer") || i.IsInt64() || i.IsUint64() {
			return i, nil
		}
	}
	f, err := v.Float64()
	if err != nil || math.IsInf(f, 0) {
		return nil, errNoForm
	}
	return f, nil
}

// allows reports whether s says that values of a type are allowed.
func allows(s document, typ string) bool {
	if several, ok := s["type"].([]any); ok {
		for _, t := range several {
			if t == typ {
				return true
			}
		}
	}
	return s["type"] == typ
}
