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
