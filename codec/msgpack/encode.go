package msgpack

import (
	"encoding"
	"math"
	"math/big"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/asterisque-go/asterisque/internal/encodable"
)

// encoder appends values to b.
type encoder struct {
	b        []byte
	pointers int // pointers to the value: they may be circular
}

const mostPointers = 1000

// value appends v, which is nested depth deep, by plan p.
func (e *encoder) value(p *plan, v reflect.Value, depth int) error {
	switch p.out {
	case asBool:
		e.b = msgp.AppendBool(e.b, v.Bool())
	case asInteger:
		e.b = appendInt(e.b, v.Int())
	case asUnsigned:
		e.b = msgp.AppendUint64(e.b, v.Uint())
	case asFloat:
		if p.t.Kind() == reflect.Float32 {
			e.b = msgp.AppendFloat32(e.b, float32Of(v))
			return nil
		}
		e.b = msgp.AppendFloat64(e.b, v.Float())
	case asText:
		s := v.String()
		if !utf8.ValidString(s) {
			return encodable.NotUTF8()
		}
		e.b = msgp.AppendString(e.b, s)
		return fits(len(s))
	case asSlice, asArray, asMap, asStruct:
		if depth == depthMost {
			return encodable.TooDeep(depthMost)
		}
		return e.several(p, v, depth+1)
	case asPointer, asInterface:
		if v.IsNil() {
			e.b = appendNil(e.b)
			return nil
		}
		return e.pointed(p, v.Elem(), depth)
	default:
		return e.special(p, v)
	}
	return nil
}

// pointed appends the value behind p, a pointer or an interface.
func (e *encoder) pointed(p *plan, to reflect.Value, depth int) error {
	if p.elem == p {
		return unsupported(p.t)
	}
	if e.pointers == mostPointers {
		return &encodable.Fault{Reason: "pointers lead to each other without end"}
	}
	e.pointers++
	elem := p.elem
	if p.out == asInterface {
		elem = planOf(to.Type())
	}
	err := e.value(elem, to, depth)
	e.pointers--
	return err
}

// float32Of keeps the bits of a NaN, which a conversion to float64 and back would change.
func float32Of(v reflect.Value) float32 {
	if f := v.Float(); !math.IsNaN(f) {
		return float32(f)
	}
	return v.Convert(reflect.TypeFor[float32]()).Interface().(float32)
}

// special appends bytes, and values of types with a special encoding.
func (e *encoder) special(p *plan, v reflect.Value) (err error) {
	switch p.out {
	case asBytes, asByteArray:
		if p.out == asBytes && v.IsNil() {
			e.b = appendNil(e.b)
			return nil
		}
		e.b, _ = appendBytes(e.b, addressable(v, p.out == asByteArray).Bytes())
		return fits(v.Len())
	case asTime:
		e.b = msgp.AppendTimeExt(e.b, addressable(v, true).Addr().Interface().(*time.Time).UTC())
	case asBig:
		return e.big(addressable(v, true).Addr().Interface().(*big.Int))
	case asExt:
		e.b, err = appendExt(e.b, addressable(v, true).Addr().Interface().(*Ext))
	case asOwn:
		e.b, err = addressable(v, true).Addr().Interface().(msgp.Marshaler).MarshalMsg(e.b)
	case asBinary:
		var b []byte
		if b, err = addressable(v, true).Addr().Interface().(encoding.BinaryMarshaler).MarshalBinary(); err == nil {
			e.b, _ = appendBytes(e.b, append([]byte{}, b...))
			err = fits(len(b))
		}
	default:
		return unsupported(p.t)
	}
	return err
}

// addressable returns v, or a copy if it must have an address and has none.
func addressable(v reflect.Value, must bool) reflect.Value {
	if !must || v.CanAddr() {
		return v
	}
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}

func (e *encoder) big(n *big.Int) error {
	switch {
	case n.IsInt64():
		e.b = appendInt(e.b, n.Int64())
	case n.IsUint64():
		e.b = msgp.AppendUint64(e.b, n.Uint64())
	default:
		return reason("MessagePack has no type for an integer of more than 64 bits")
	}
	return nil
}

// several appends an array or a map. Its items are nested depth deep.
func (e *encoder) several(p *plan, v reflect.Value, depth int) error {
	if p.out == asStruct {
		return e.structure(p, v, depth)
	}
	if (p.out == asSlice || p.out == asMap) && v.IsNil() {
		e.b = appendNil(e.b)
		return nil
	}
	n := v.Len()
	if err := fits(n); err != nil {
		return err
	}
	if p.out == asMap {
		return e.entries(p, v, depth)
	}
	e.b = msgp.AppendArrayHeader(e.b, uint32(n))
	for i := range n {
		if err := e.value(p.elem, v.Index(i), depth); err != nil {
			return inSent(err, among(i))
		}
	}
	return nil
}

func (e *encoder) entries(p *plan, v reflect.Value, depth int) error {
	e.b = msgp.AppendMapHeader(e.b, uint32(v.Len()))
	var keys encodable.Keys
	for i := v.MapRange(); i.Next(); {
		key := i.Key()
		keys.Note(key)
		if err := e.value(p.key, key, depth); err != nil {
			return inSent(err, encodable.KeyName(key))
		}
		if err := e.value(p.elem, i.Value(), depth); err != nil {
			return inSent(err, encodable.KeyName(key))
		}
	}
	if keys.Suspicious() {
		if f := encodable.SameKeys(v, func(key any) ([]byte, error) { return Values.Append(nil, key) }); f != nil {
			return f
		}
	}
	return nil
}

func (e *encoder) structure(p *plan, v reflect.Value, depth int) error {
	if len(p.fields) == 0 && encodable.Hides(p.t) && !v.IsZero() {
		return encodable.Opaque(p.t)
	}
	e.b = msgp.AppendMapHeader(e.b, uint32(p.written(v)))
	for i := range p.fields {
		f := &p.fields[i]
		field, ok := f.of(v)
		if !ok {
			continue
		}
		e.b = append(e.b, f.key...)
		if err := e.value(f.plan, field, depth); err != nil {
			return inSent(err, "."+f.name)
		}
	}
	return nil
}

// written returns the number of encoded fields of v.
func (p *plan) written(v reflect.Value) (n int) {
	if p.always {
		return len(p.fields)
	}
	for i := range p.fields {
		if _, ok := p.fields[i].of(v); ok {
			n++
		}
	}
	return n
}

// of returns the field of v, if it is encoded.
func (f *structField) of(v reflect.Value) (field reflect.Value, ok bool) {
	for _, i := range f.place {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v, !(f.omitZero && v.IsZero() || f.omitEmpty && isEmpty(v))
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.Array, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}
