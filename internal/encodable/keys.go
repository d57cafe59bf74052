package encodable

import (
	"math"
	"reflect"
	"sync"

	"github.com/asterisque-go/asterisque/internal/sizing"
)

func (w *walker) entries(p *sizing.Plan, v reflect.Value, depth int) *Fault {
	if v.IsNil() {
		return nil
	}
	if depth > w.Depth {
		return TooDeep(w.Depth)
	}
	plainKey, plainElem := w.isPlain(p.Key) && !MayBeNaN(p.Key.Type), w.isPlain(p.Elem)
	if plainKey && plainElem {
		return nil
	}
	e := w.entry(p, v)
	defer e.free()
	var keys Keys
	for e.i.Next() {
		e.key.SetIterKey(&e.i)
		if !plainKey {
			keys.Note(e.key)
			if f := w.value(p.Key, e.key, depth); f != nil {
				return f.Within(KeyName(e.key))
			}
		}
		if plainElem {
			continue
		}
		e.elem.SetIterValue(&e.i)
		if f := w.value(p.Elem, e.elem, depth); f != nil {
			return f.Within(KeyName(e.key))
		}
	}
	if keys.Suspicious() {
		return SameKeys(v, w.Encode)
	}
	return nil
}

// mapEntry is one entry of a Go map, in reused memory.
type mapEntry struct {
	pool      *sync.Pool
	i         reflect.MapIter
	key, elem reflect.Value
}

// entry returns an entry before the first one of v, which is a map of plan p.
func (r *Rules) entry(p *sizing.Plan, v reflect.Value) *mapEntry {
	pool, ok := r.spare.Load(p)
	if !ok {
		pool, _ = r.spare.LoadOrStore(p, new(sync.Pool))
	}
	e, _ := pool.(*sync.Pool).Get().(*mapEntry)
	if e == nil {
		e = &mapEntry{key: reflect.New(p.Key.Type).Elem(), elem: reflect.New(p.Elem.Type).Elem(), pool: pool.(*sync.Pool)}
	}
	e.i.Reset(v)
	return e
}

// free returns e to its pool.
func (e *mapEntry) free() {
	e.i.Reset(reflect.Value{})
	e.key.SetZero()
	e.elem.SetZero()
	e.pool.Put(e)
}

// Keys records the keys of a Go map to detect keys that may be equal for the receiver: NaN, which
// is not even equal to itself, and numbers and texts of different types in a map of any.
type Keys struct {
	first reflect.Type
	mixed bool
	nan   int
}

// MayBeNaN reports whether values of type t may be NaN, or hold one.
func MayBeNaN(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128, reflect.Interface, reflect.Array, reflect.Struct:
		return true
	}
	return false
}

// Note records a key.
func (k *Keys) Note(key reflect.Value) {
	if !MayBeNaN(key.Type()) {
		return
	}
	if !key.Equal(key) {
		k.nan++
	}
	if key.Kind() == reflect.Interface && !key.IsNil() {
		t := key.Elem().Type()
		k.mixed = k.mixed || k.first != nil && k.first != t
		k.first = t
	}
}

// Suspicious reports whether SameKeys has to be called.
func (k *Keys) Suspicious() bool { return k.mixed || k.nan > 1 }

// SameKeys returns the fault of the map m if two of its keys are equal for the receiver. encode
// returns the encoding of a key.
func SameKeys(m reflect.Value, encode func(any) ([]byte, error)) *Fault {
	seen := make(map[any]struct{}, m.Len())
	for i := m.MapRange(); i.Next(); {
		key := received(i.Key(), encode)
		if _, twice := seen[key]; twice {
			f := &Fault{Reason: "two keys of a map are one to the peer"}
			return f.Within(KeyName(i.Key()))
		}
		seen[key] = struct{}{}
	}
	return nil
}

// received returns values that are equal for keys that are equal for the receiver.
func received(key reflect.Value, encode func(any) ([]byte, error)) any {
	for key.Kind() == reflect.Interface && !key.IsNil() {
		key = key.Elem()
	}
	if key.CanFloat() && !math.IsNaN(key.Float()) {
		return key.Float()
	}
	b, err := encode(key.Interface())
	if err != nil {
		return new(byte) // equal to no other: the codec will report the reason
	}
	return string(b)
}
