package classic

import (
	"fmt"
	"reflect"

	"github.com/asterisque-go/asterisque/codec"
)

// JoinParams appends the parameters of an Open as the single value that Decode expects for the
// parameter of a function, and returns the longer slice. It keeps no part of m.
func (c Codec) JoinParams(dst []byte, m *Open) []byte {
	return append(appendCount(append(dst, paramsTag), c.form(), m.Count), m.Params...)
}

// SplitParams converts encoded, the output of Append for the parameter of a function, into the
// parameters of an Open. params is a part of encoded. No bytes at all are no parameters. The error
// is a *FormatError.
func (c Codec) SplitParams(encoded []byte) (count uint16, params []byte, err error) {
	if len(encoded) == 0 {
		return 0, nil, nil
	}
	r := newReader(c, encoded)
	if encoded[0] == paramsTag {
		n, err := r.params()
		return uint16(n), r.data, err
	}
	if err := c.CheckValue(encoded); err != nil {
		return 0, nil, err
	}
	if r.tag() == structTag && len(r.raw()) == 0 { // a struct without a schema
		n := r.fields()
		return uint16(n), r.data, nil
	}
	return 1, encoded, nil
}

// params reads the head of parameters in a single value, and returns how many complete values
// follow the head.
func (r *itemReader) params() (count int, err error) {
	r.tag()
	count = r.count()
	switch values := *r; r.err.(type) {
	case nil:
		return count, values.whole(count)
	case *FormatError:
		return 0, r.err
	}
	return 0, malformed(r.limit, "ends in the middle of the parameters")
}

// ResultOf converts encoded, the output of Append for a result, into the result of a Close. It may
// change encoded for that. No bytes at all are null. The error is a *FormatError.
func (c Codec) ResultOf(encoded []byte) ([]byte, error) {
	if len(encoded) == 0 {
		return []byte{nullTag}, nil
	}
	switch r := newReader(c, encoded); r.tag() {
	case paramsTag:
		encoded[0] = listTag // it has the same form
	case structTag:
		if len(r.raw()) == 0 && r.fields() == 0 && r.err == nil && len(r.data) == 0 { // a unit
			return []byte{nullTag}, nil
		}
	}
	return encoded, c.CheckValue(encoded)
}

// decodeParams decodes the parameters of an Open, written by JoinParams, into the parameter of a
// function.
func (c Codec) decodeParams(data []byte, to reflect.Value) error {
	d := newDecoder(c, data)
	count, err := d.params()
	if err != nil {
		return err
	}
	if single := count == 1 && d.data[0] == nullTag; !single { // a null is a nil pointer
		for range MaxDepth { // a type can point to itself
			if to.Kind() != reflect.Pointer {
				break
			}
			to.Set(reflect.New(to.Type().Elem()))
			to = to.Elem()
		}
	}
	switch {
	case to.Type() == paramsType:
		to.Set(reflect.ValueOf(d.all(count)))
	case to.Kind() == reflect.Interface && to.NumMethod() == 0:
		to.Set(reflect.ValueOf(d.all(count)))
	case spread(to.Type()):
		d.spread(to, count)
	case count != 1:
		return wrongCount(to.Type(), 1, count)
	default:
		d.value(to, 0)
	}
	return d.err
}

// all reads count parameters of any type.
func (d *decoder) all(count int) Params {
	p := make(Params, count)
	for i := range p {
		if !d.at(reflect.ValueOf(&p[i]).Elem(), 1, i) {
			break
		}
	}
	return p
}

// spread reports whether the fields of a t are one parameter each.
func spread(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || t == structType {
		return false
	}
	schema, _ := fields(t)
	return schema == ""
}

// spread reads one parameter into each field of a struct.
func (d *decoder) spread(to reflect.Value, count int) {
	_, index := fields(to.Type())
	if len(index) != count {
		d.fail(wrongCount(to.Type(), len(index), count))
		return
	}
	for i, field := range index {
		if !d.at(to.Field(field), 1, i) {
			return
		}
	}
}

func wrongCount(t reflect.Type, want, got int) error {
	what := "parameters"
	if want == 1 {
		what = "parameter"
	}
	return &codec.TypeError{
		Want: fmt.Sprintf("a call with %d %s", want, what), Got: fmt.Sprintf("one with %d", got), Err: fmt.Errorf("they are stored in a %v", t),
	}
}
