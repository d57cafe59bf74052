package classic

import (
	"encoding/binary"
	"fmt"
	"reflect"

	"github.com/asterisque-go/asterisque/codec"
)

// JoinParams appends the parameters of an Open as the one value that Values.Decode takes for the
// parameter of a function, and returns the longer slice. It keeps no part of m.
func JoinParams(dst []byte, m *Open) []byte {
	return append(binary.BigEndian.AppendUint16(append(dst, paramsTag), m.Count), m.Params...)
}

// SplitParams makes of encoded, which is what Values.Append wrote for the parameter of a function,
// the parameters of an Open. params is a part of encoded. No bytes at all are no parameters. The
// error is a *FormatError.
func SplitParams(encoded []byte) (count uint16, params []byte, err error) {
	if len(encoded) == 0 {
		return 0, nil, nil
	}
	if encoded[0] == paramsTag {
		if len(encoded) < 3 {
			return 0, nil, malformed(len(encoded), "ends in the middle of the parameters")
		}
		count = binary.BigEndian.Uint16(encoded[1:])
		return count, encoded[3:], checkValues(encoded, 3, int(count))
	}
	if err := CheckValue(encoded); err != nil {
		return 0, nil, err
	}
	if encoded[0] == structTag && string(encoded[1:3]) == "\x00\x00" { // a struct without a schema
		return uint16(encoded[3]), encoded[4:], nil
	}
	return 1, encoded, nil
}

// ResultOf makes of encoded, which is what Values.Append wrote for a result, the result of a Close,
// and may change encoded for that. No bytes at all are null. The error is a *FormatError.
func ResultOf(encoded []byte) ([]byte, error) {
	if len(encoded) == 0 {
		return []byte{nullTag}, nil
	}
	switch {
	case encoded[0] == paramsTag:
		encoded[0] = listTag // which has the same form
	case string(encoded) == unit:
		return []byte{nullTag}, nil
	}
	return encoded, CheckValue(encoded)
}

// decodeParams decodes the parameters of an Open, as JoinParams has written them, into the
// parameter of a function.
func decodeParams(data []byte, to reflect.Value) error {
	if len(data) < 3 {
		return malformed(len(data), "ends in the middle of the parameters")
	}
	count := int(binary.BigEndian.Uint16(data[1:]))
	if err := checkValues(data, 3, count); err != nil {
		return err
	}
	d := decoder{data: data[3:]}
	if single := count == 1 && data[3] == nullTag; !single { // a null is a nil pointer
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
		to.Set(reflect.ValueOf(d.params(count)))
	case to.Kind() == reflect.Interface && to.NumMethod() == 0:
		to.Set(reflect.ValueOf(d.params(count)))
	case spread(to.Type()):
		d.spread(to, count)
	case count != 1:
		return wrongCount(to.Type(), 1, count)
	default:
		d.value(to, 0)
	}
	return d.err
}

// params reads count parameters of any type.
func (d *decoder) params(count int) Params {
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
