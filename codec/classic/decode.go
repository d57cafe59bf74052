package classic

import (
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/truncate"
)

// decoder reads values that CheckValue has found to be complete: so there are enough bytes, and no
// value has more elements than bytes.
type decoder struct {
	itemReader
	input []byte // the whole input
}

func newDecoder(c Codec, data []byte) decoder { return decoder{newReader(c, data), data} }

// mismatch fails with the error for a value behind tag; got is a more precise description, or
// empty.
func (d *decoder) mismatch(to reflect.Type, tag byte, got string) {
	if got == "" {
		got = kinds[tag]
	}
	d.fail(&codec.TypeError{Want: wanted(to), Got: got, Err: fmt.Errorf("%s cannot be stored in a %v", got, to)})
}

// at reads the i-th value of a list, a structure or the parameters, and reports whether it matches.
func (d *decoder) at(to reflect.Value, depth, i int) bool {
	d.value(to, depth)
	if d.err != nil {
		d.failedWithin(fmt.Sprintf("[%d]", i))
	}
	return d.err == nil
}

// failedWithin adds the place of the mismatch.
func (d *decoder) failedWithin(name string) {
	var mismatch *codec.TypeError
	if errors.As(d.err, &mismatch) {
		mismatch.Within(name)
	}
}

// value reads one value, which is nested depth deep, into to.
func (d *decoder) value(to reflect.Value, depth int) {
	if depth > MaxDepth {
		d.fail(tooDeep())
	}
	if d.err != nil || len(d.data) == 0 {
		return
	}
	tag := d.data[0]
	switch {
	case tag == nullTag:
		d.tag()
		to.SetZero()
	case to.Kind() == reflect.Pointer:
		p := reflect.New(to.Type().Elem())
		d.value(p.Elem(), depth+1)
		to.Set(p)
	case to.Kind() == reflect.Interface:
		d.dynamic(to, depth)
	case tag == mapTag && to.Type() == mapType, tag == structTag && to.Type() == structType:
		d.setLoose(to, depth)
	default:
		d.tag()
		d.typed(to, tag, depth)
	}
}

// dynamic reads a value of any type into an interface.
func (d *decoder) dynamic(to reflect.Value, depth int) {
	if to.NumMethod() > 0 {
		d.mismatch(to.Type(), d.data[0], "")
		return
	}
	d.setLoose(to, depth)
}

// setLoose reads a value without a type into to, if its type accepts the value.
func (d *decoder) setLoose(to reflect.Value, depth int) {
	if v := d.loose(depth); v != nil {
		to.Set(reflect.ValueOf(v))
	}
}

func tooDeep() error { return codec.ErrTooLarge.Withf("values nested deeper than %d", MaxDepth) }

// typed reads the value behind tag into to, which is neither a pointer nor an interface.
func (d *decoder) typed(to reflect.Value, tag byte, depth int) {
	kind := to.Kind()
	switch tag {
	case trueTag, falseTag:
		if kind == reflect.Bool {
			to.SetBool(tag == trueTag)
			return
		}
	case int8Tag, int16Tag, int32Tag, int64Tag:
		d.integerInto(to, tag)
		return
	case float32Tag, float64Tag:
		d.floatInto(to, tag)
		return
	case stringTag:
		if kind == reflect.String {
			to.SetString(text(d.raw()))
			return
		}
	case binaryTag:
		if (kind == reflect.Slice || kind == reflect.Array) && to.Type().Elem().Kind() == reflect.Uint8 && !isUUID(to.Type()) {
			d.binary(to)
			return
		}
	case uuidTag:
		if isUUID(to.Type()) {
			u := d.uuid()
			copyBytes(to, u[:])
			return
		}
	case listTag:
		if kind == reflect.Slice && to.Type() != mapType && to.Type().Elem().Kind() != reflect.Uint8 || kind == reflect.Array && to.Type().Elem().Kind() != reflect.Uint8 {
			d.list(to, depth)
			return
		}
	case mapTag:
		if kind == reflect.Map {
			d.goMap(to, depth)
			return
		}
	case structTag:
		if kind == reflect.Struct {
			d.structure(to, depth)
			return
		}
	}
	d.mismatch(to.Type(), tag, "")
}

// integerInto reads an integer into any type that holds its value.
func (d *decoder) integerInto(to reflect.Value, tag byte) {
	n := d.integer(widths[tag])
	ok := false
	switch {
	case to.CanInt():
		if ok = !to.OverflowInt(n); ok {
			to.SetInt(n)
		}
	case to.CanUint():
		if ok = n >= 0 && !to.OverflowUint(uint64(n)); ok {
			to.SetUint(uint64(n))
		}
	case to.Kind() == reflect.Float64:
		if ok = n >= -1<<53 && n <= 1<<53; ok {
			to.SetFloat(float64(n))
		}
	case to.Kind() == reflect.Float32:
		if ok = n >= -1<<24 && n <= 1<<24; ok {
			to.SetFloat(float64(n))
		}
	}
	if !ok {
		d.mismatch(to.Type(), tag, fmt.Sprintf("the integer %d", n))
	}
}

// floatInto reads a floating-point number into any floating-point type that holds its value.
func (d *decoder) floatInto(to reflect.Value, tag byte) {
	kind := to.Kind()
	switch {
	case tag == float32Tag && kind == reflect.Float32 && to.CanAddr():
		f := math.Float32frombits(uint32(d.float(4)))
		to.Set(reflect.ValueOf(f).Convert(to.Type())) // of float32, this keeps the bits of a NaN
	case tag == float32Tag && kind == reflect.Float64:
		to.SetFloat(float64(math.Float32frombits(uint32(d.float(4)))))
	case tag == float64Tag && kind == reflect.Float64:
		to.SetFloat(math.Float64frombits(d.float(8)))
	case tag == float64Tag && kind == reflect.Float32:
		f := math.Float64frombits(d.float(8))
		if float64(float32(f)) != f && f == f {
			d.mismatch(to.Type(), tag, fmt.Sprintf("the float %v", f))
			return
		}
		to.SetFloat(f)
	default:
		d.mismatch(to.Type(), tag, "")
	}
}

// binary reads bytes into a slice, or into an array of just as many.
func (d *decoder) binary(to reflect.Value) {
	b := d.raw()
	switch {
	case to.Kind() == reflect.Slice:
		to.Set(reflect.MakeSlice(to.Type(), len(b), len(b)))
	case to.Len() != len(b):
		d.mismatch(to.Type(), binaryTag, fmt.Sprintf("a binary of %d bytes", len(b)))
		return
	}
	copyBytes(to, b)
}

// copyBytes copies b into to, a slice or an array of bytes.
func copyBytes(to reflect.Value, b []byte) { copy(to.Bytes(), b) }

// list reads a list into a slice, or into an array of just as many elements.
func (d *decoder) list(to reflect.Value, depth int) {
	n := d.count()
	switch {
	case to.Kind() == reflect.Slice:
		to.Set(reflect.MakeSlice(to.Type(), n, n))
	case to.Len() != n:
		d.mismatch(to.Type(), listTag, fmt.Sprintf("a list of %d", n))
		return
	}
	for i := range n {
		if !d.at(to.Index(i), depth+1, i) {
			return
		}
	}
}

// structure reads the schema and the fields of a struct.
func (d *decoder) structure(to reflect.Value, depth int) {
	schema := text(d.raw())
	n := d.fields()
	want, index := fields(to.Type())
	if len(index) != n || want != "" && want != schema {
		d.fail(&codec.TypeError{
			Want: fmt.Sprintf("a struct%s with %d fields", named(want), len(index)), Got: fmt.Sprintf("one%s with %d", named(schema), n),
			Err: fmt.Errorf("it cannot be stored in a %v", to.Type()),
		})
		return
	}
	for i, field := range index {
		if !d.at(to.Field(field), depth+1, i) {
			return
		}
	}
}

func named(schema string) string {
	if schema == "" {
		return ""
	}
	return fmt.Sprintf(" of schema %q", truncate.Text(schema, 128))
}
