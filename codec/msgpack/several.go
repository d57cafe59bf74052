package msgpack

import (
	"reflect"
	"unicode/utf8"
)

// several stores an array or a map. Its items are nested depth deep.
func (r *itemReader) several(p *plan, h itemHead, v reflect.Value, depth int) error {
	switch {
	case p.form == asSlice && h.kind == isArray:
		list := reflect.MakeSlice(p.t, h.n, h.n)
		v.Set(list)
		return r.list(p, h, list, depth)
	case p.form == asArray && h.kind == isArray && h.n <= v.Len():
		v.SetZero()
		return r.list(p, h, v, depth)
	case p.form == asMap && h.kind == isMap:
		return r.entries(p, h, v, depth)
	case p.form == asStruct && h.kind == isMap:
		return r.structure(p, h, v, depth)
	}
	return r.mismatch(p, h)
}

func (r *itemReader) list(p *plan, h itemHead, to reflect.Value, depth int) error {
	r.item(h)
	for i := range h.n {
		if err := r.value(p.elem, to.Index(i), depth); err != nil {
			return within(err, among(i))
		}
	}
	return nil
}

// entries stores a map. Other entries of v stay.
func (r *itemReader) entries(p *plan, h itemHead, v reflect.Value, depth int) error {
	r.item(h)
	m := reflect.MakeMapWithSize(p.t, h.n)
	key, elem := reflect.New(p.key.t).Elem(), reflect.New(p.elem.t).Elem()
	var nan nanKeys
	for i := range h.n {
		key.SetZero()
		elem.SetZero()
		from := r.at
		if err := r.value(p.key, key, depth); err != nil {
			return within(err, "[key of entry "+among(i)[1:])
		}
		name := r.data[from:r.at]
		if !key.Comparable() {
			return errKey
		}
		if p.key.mayBeNaN() && !key.Equal(key) && nan.twice(name) {
			return errTwice
		}
		if err := r.value(p.elem, elem, depth); err != nil {
			return within(err, entry(name, i))
		}
		if m.SetMapIndex(key, elem); m.Len() != i+1 {
			return errTwice
		}
	}
	merge(v, m)
	return nil
}

// merge adds the entries of m to v.
func merge(v, m reflect.Value) {
	if v.Len() == 0 {
		v.Set(m)
		return
	}
	for i := m.MapRange(); i.Next(); {
		v.SetMapIndex(i.Key(), i.Value())
	}
}

// structure stores a map in the fields of a struct.
func (r *itemReader) structure(p *plan, h itemHead, v reflect.Value, depth int) error {
	r.item(h)
	k := seenKeys{plan: p}
	for range h.n {
		at, name, err := r.nextField(&k, depth)
		switch {
		case err != nil:
			return err
		case at < 0:
			err = r.skip(depth)
		default:
			f := &p.fields[at]
			err = r.value(f.plan, place(v, f.place), depth)
		}
		if err != nil {
			return within(err, field(string(name)))
		}
	}
	return nil
}

// place returns the field of a struct at a place. It creates missing embedded structs.
func place(v reflect.Value, place []int) reflect.Value {
	for _, i := range place {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v
}

// seenKeys records the keys of a struct that were read.
type seenKeys struct {
	*plan
	next int // the next field, if they are in order
	few  [32]bool
	many []bool // of a struct with more fields
	// unknown keys; nil without one
	strange map[string]struct{}
}

// nextField reads a key, and returns the index of its field, or -1.
func (r *itemReader) nextField(k *seenKeys, depth int) (at int, name []byte, err error) {
	h := r.peek()
	if h.kind != isText {
		return r.oddKey(k, depth)
	}
	_, name = r.item(h)
	at, ok := k.next, k.next < len(k.fields) && string(name) == k.fields[k.next].name
	if !ok {
		at, ok = k.byName[string(name)]
	}
	if ok {
		k.next = at + 1
		return at, name, k.come(at)
	}
	if !utf8.Valid(name) {
		return 0, nil, errNoText
	}
	return -1, name, k.stranger(string(name))
}

// oddKey reads a key that is no text, and so of no field.
func (r *itemReader) oddKey(k *seenKeys, depth int) (at int, name []byte, err error) {
	from := r.at
	if err := r.skip(depth); err != nil {
		return 0, nil, err
	}
	name = r.data[from:r.at]
	return -1, name, k.stranger("\xff" + string(name)) // which begins no text
}

// come records a field, and rejects a duplicate.
func (k *seenKeys) come(at int) error {
	seen := k.few[:]
	if len(k.fields) > len(seen) {
		if k.many == nil {
			k.many = make([]bool, len(k.fields))
		}
		seen = k.many
	}
	if seen[at] {
		return errTwice
	}
	seen[at] = true
	return nil
}

// stranger records an unknown key, and rejects a duplicate.
func (k *seenKeys) stranger(name string) error {
	if _, ok := k.strange[name]; ok {
		return errTwice
	}
	if k.strange == nil {
		k.strange = make(map[string]struct{})
	}
	k.strange[name] = struct{}{}
	return nil
}
