package msgpack

import (
	"reflect"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"
)

var errKey = malformed("the key of a map is an array, a map, a binary string or an extension type")

// free stores an item in an interface.
func (r *itemReader) free(p *plan, h itemHead, v reflect.Value, depth int) error {
	if p.t.NumMethod() > 0 {
		return r.mismatch(p, h)
	}
	got, err := r.any(h, depth)
	if err == nil && got != nil {
		v.Set(reflect.ValueOf(got))
	}
	return err
}

// any returns the next item as its default type.
func (r *itemReader) any(h itemHead, depth int) (any, error) {
	switch h.kind {
	case isMalformed:
		return nil, r.malformed()
	case isArray, isMap:
		if depth == depthMost {
			return nil, errTooDeep
		}
		if h.kind == isArray {
			return r.anyList(h, depth+1)
		}
		return r.anyMap(h, depth+1)
	}
	whole, content := r.item(h)
	switch h.kind {
	case isBool:
		b, _, _ := msgp.ReadBoolBytes(whole)
		return b, nil
	case isInteger:
		return integerOf(whole).free(), nil
	case isFloat:
		return freeFloat(whole), nil
	case isText:
		if !utf8.Valid(content) {
			return nil, errNoText
		}
		return string(content), nil
	case isBytes:
		return append([]byte{}, content...), nil
	case isExt:
		if h.ext == timestamp {
			return timeOf(whole)
		}
		return extOf(h, content), nil
	}
	return nil, nil
}

func (r *itemReader) anyList(h itemHead, depth int) (any, error) {
	r.item(h)
	list := make([]any, h.n)
	for i := range list {
		v, err := r.any(r.peek(), depth)
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return list, nil
}

func (r *itemReader) anyMap(h itemHead, depth int) (any, error) {
	r.item(h)
	m := make(map[any]any, h.n)
	var nan nanKeys
	for i := range h.n {
		from := r.at
		key, err := r.any(r.peek(), depth)
		if err != nil {
			return nil, err
		}
		switch key.(type) {
		case []any, map[any]any, []byte, Ext:
			return nil, errKey
		}
		if key != key && nan.twice(r.data[from:r.at]) {
			return nil, errTwice
		}
		v, err := r.any(r.peek(), depth)
		if err != nil {
			return nil, err
		}
		if m[key] = v; len(m) != i+1 {
			return nil, errTwice
		}
	}
	return m, nil
}
