package msgpack

import (
	"encoding"
	"math"
	"math/big"
	"reflect"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/asterisque-go/asterisque/codec"
)

// value stores the next item, which is nested depth deep, in v by plan p.
func (r *itemReader) value(p *plan, v reflect.Value, depth int) error {
	h := r.peek()
	if h.kind == isMalformed {
		return r.malformed()
	}
	if h.kind == isNil {
		r.item(h)
		switch p.form {
		case asPointer, asInterface, asSlice, asBytes, asMap:
			v.SetZero()
		}
		return nil
	}
	for p.form == asPointer {
		if v.IsNil() {
			v.Set(reflect.New(p.elem.t))
		}
		if p.elem == p {
			return r.mismatch(p, h)
		}
		p, v = p.elem, v.Elem()
	}
	switch p.form {
	case asInterface:
		return r.free(p, h, v, depth)
	case asOwn, asBinary:
		return r.own(p, h, v, depth)
	case asSlice, asArray, asMap, asStruct:
		if depth == depthMost && (h.kind == isArray || h.kind == isMap) {
			return errTooDeep
		}
		return r.several(p, h, v, depth+1)
	}
	return r.one(p, h, v)
}

// one stores an item that contains no others.
func (r *itemReader) one(p *plan, h itemHead, v reflect.Value) error {
	switch {
	case p.form == asBool && h.kind == isBool:
		whole, _ := r.item(h)
		b, _, _ := msgp.ReadBoolBytes(whole)
		v.SetBool(b)
	case h.kind == isInteger:
		return r.integer(p, h, v)
	case p.form == asFloat && h.kind == isFloat:
		f, _, _ := msgp.ReadFloat64Bytes(r.data[r.at : r.at+h.size])
		if v.OverflowFloat(f) {
			return r.mismatch(p, h)
		}
		whole, _ := r.item(h)
		if math.IsNaN(f) && p.t.Kind() == reflect.Float32 && len(whole) == short {
			v.Set(reflect.ValueOf(freeFloat(whole)).Convert(p.t)) // which keeps the bits
			return nil
		}
		v.SetFloat(f)
	case p.form == asText && h.kind == isText:
		_, content := r.item(h)
		if !utf8.Valid(content) {
			return errNoText
		}
		v.SetString(string(content))
	case p.form == asBytes && h.kind == isBytes:
		_, content := r.item(h)
		v.SetBytes(append([]byte{}, content...))
	case p.form == asByteArray && h.kind == isBytes && h.n <= p.t.Len():
		_, content := r.item(h)
		v.SetZero()
		reflect.Copy(v, reflect.ValueOf(content))
	case p.form == asTime && h.kind == isExt && h.ext == timestamp:
		whole, _ := r.item(h)
		t, err := timeOf(whole)
		v.Set(reflect.ValueOf(t))
		return err
	case p.form == asExt && h.kind == isExt:
		_, content := r.item(h)
		*v.Addr().Interface().(*Ext) = extOf(h, content)
	default:
		return r.mismatch(p, h)
	}
	return nil
}

// integer stores an integer, if v can hold it exactly.
func (r *itemReader) integer(p *plan, h itemHead, v reflect.Value) error {
	whole := r.data[r.at : r.at+h.size]
	n := integerOf(whole)
	signed, isSigned := n.signed()
	unsigned, isUnsigned := n.unsigned()
	switch {
	case p.form == asInteger && isSigned && !v.OverflowInt(signed):
		v.SetInt(signed)
	case p.form == asUnsigned && isUnsigned && !v.OverflowUint(unsigned):
		v.SetUint(unsigned)
	case p.form == asFloat && isSigned:
		v.SetFloat(float64(signed))
	case p.form == asFloat:
		v.SetFloat(float64(unsigned))
	case p.form == asBig && isSigned:
		v.Addr().Interface().(*big.Int).SetInt64(signed)
	case p.form == asBig:
		v.Addr().Interface().(*big.Int).SetUint64(unsigned)
	default:
		return r.mismatch(p, h)
	}
	r.item(h)
	return nil
}

// own calls the decoding method of v.
func (r *itemReader) own(p *plan, h itemHead, v reflect.Value, depth int) error {
	from := r.at
	if err := r.skip(depth); err != nil {
		return err
	}
	whole := r.data[from:r.at:r.at]
	err, fits := error(nil), true
	switch to := v.Addr().Interface(); {
	case p.form == asOwn:
		_, err = to.(msgp.Unmarshaler).UnmarshalMsg(whole)
	case h.kind == isBytes:
		err = to.(encoding.BinaryUnmarshaler).UnmarshalBinary(whole[h.size:])
	default:
		fits = false
	}
	if fits && err == nil {
		return nil
	}
	r.at = from
	e := r.mismatch(p, h).(*codec.TypeError)
	e.Err = err
	return e
}
