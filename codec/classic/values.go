package classic

import (
	"fmt"
	"reflect"

	"github.com/asterisque-go/asterisque/codec"
)

// Values is the value codec of classic sessions; its name is "classic". The package comment has its
// table of types. Append refuses what the format cannot hold, such as a string of more than
// MaxString bytes, with an error for which errors.Is(err, codec.ErrTooLarge) holds, and Decode and
// Append refuse what is nested deeper than MaxDepth.
var Values codec.Values = values{}

// MaxDepth is how deep values may be nested. The original comes to about 2,000.
const MaxDepth = 1024

type values struct{}

// Name implements codec.Values.
func (values) Name() string { return "classic" }

// Append implements codec.Values.
func (values) Append(dst []byte, v any) ([]byte, error) {
	e := encoder{b: dst}
	if p, ok := paramsIn(v); ok {
		e.elements(paramsTag, reflect.ValueOf(p), 0)
	} else if isUnit(reflect.ValueOf(v)) {
		e.b = append(e.b, unit...)
	} else {
		e.value(reflect.ValueOf(v), 0)
	}
	if e.err != nil {
		return dst, e.err
	}
	return e.b, nil
}

// paramsIn returns the Params that v is or points to.
func paramsIn(v any) (Params, bool) {
	switch v := v.(type) {
	case Params:
		return v, true
	case *Params:
		if v != nil {
			return *v, true
		}
	case *any:
		if v != nil {
			return paramsIn(*v)
		}
	}
	return nil, false
}

// Decode implements codec.Values.
func (values) Decode(data []byte, v any) error {
	to := reflect.ValueOf(v)
	if to.Kind() != reflect.Pointer || to.IsNil() {
		return &codec.TypeError{Want: "nothing", Got: "a value", Err: fmt.Errorf("%T is no pointer to decode into", v)}
	}
	if len(data) > 0 && data[0] == paramsTag {
		return decodeParams(data, to.Elem())
	}
	if err := CheckValue(data); err != nil {
		return err
	}
	d := decoder{data: data}
	d.value(to.Elem(), 0)
	return d.err
}

// fields returns the schema that a Go struct's tag gives, and the indexes of the fields that are
// sent.
func fields(t reflect.Type) (schema string, index []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("classic")
		switch {
		case f.Name == "_" && tagged:
			schema = tag
		case f.IsExported() && tag != "-":
			index = append(index, i)
		}
	}
	return schema, index
}

var (
	uuidType   = reflect.TypeFor[UUID]()
	structType = reflect.TypeFor[Struct]()
	mapType    = reflect.TypeFor[Map]()
	paramsType = reflect.TypeFor[Params]()
)

// isUUID reports whether values of t are uuids.
func isUUID(t reflect.Type) bool {
	return t.Kind() == reflect.Array && t.Len() == len(UUID{}) && t.Elem().Kind() == reflect.Uint8
}
