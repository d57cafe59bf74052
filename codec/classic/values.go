package classic

import (
	"fmt"
	"reflect"

	"github.com/asterisque-go/asterisque/codec"
)

// Append implements codec.Values. It refuses values that the original cannot hold, such as a string
// of more than MaxString bytes, and values nested deeper than MaxDepth, with an error for which
// errors.Is(err, codec.ErrTooLarge) holds.
func (c Codec) Append(dst []byte, v any) ([]byte, error) {
	e := encoder{form: c.form(), b: dst}
	if p, ok := paramsIn(v); ok {
		e.elements(paramsTag, reflect.ValueOf(p), 0)
	} else if isUnit(reflect.ValueOf(v)) {
		e.b = appendUnit(e.b, e.form)
	} else {
		e.value(reflect.ValueOf(v), 0)
	}
	if e.err != nil {
		return dst, e.failure()
	}
	return e.b, nil
}

// paramsIn returns the Params in v or behind it.
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

// Decode implements codec.Values. It refuses values nested deeper than MaxDepth as Append does.
func (c Codec) Decode(data []byte, v any) error {
	to := reflect.ValueOf(v)
	if to.Kind() != reflect.Pointer || to.IsNil() {
		return &codec.TypeError{Want: "nothing", Got: "a value", Err: fmt.Errorf("%T is no pointer to decode into", v)}
	}
	if len(data) > 0 && data[0] == paramsTag {
		return c.decodeParams(data, to.Elem())
	}
	if err := c.CheckValue(data); err != nil {
		return err
	}
	d := newDecoder(c, data)
	d.value(to.Elem(), 0)
	return d.err
}

// CheckValue returns an error, a *FormatError, unless data is exactly one encoded value.
func (c Codec) CheckValue(data []byte) error {
	r := newReader(c, data)
	return r.whole(1)
}
