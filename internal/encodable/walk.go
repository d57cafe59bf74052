package encodable

import (
	"reflect"
	"sync"
	"unicode/utf8"

	"github.com/asterisque-go/asterisque/internal/sizing"
)

// Rules are the properties of a codec. They do not change.
type Rules struct {
	Plans *sizing.Plans // the view of the codec on Go types when it encodes them
	Depth int           // the maximum depth of nested values

	// Special returns the fault of a value with the plan of a Time, a Number or its Own, or nil,
	// and the number of levels that the value adds itself.
	Special func(p *sizing.Plan, v reflect.Value) (levels int, f *Fault)

	// Encode returns the encoding of a value, or of the value it points to.
	Encode func(v any) ([]byte, error)

	spare sync.Map // of *sync.Pool with *mapEntry, by *sizing.Plan
}

// Check returns the fault of the first part of v that the codec does not carry exactly, or nil. own
// reports whether a part of v encodes itself, so that its encoding is not known. Check allocates
// nothing.
func (r *Rules) Check(v any) (own bool, f *Fault) {
	w := walker{Rules: r}
	f = w.dynamic(v, 0)
	return w.own, f
}

// Explain returns the fault of the part of v that the codec refuses to encode, or nil if there is
// none.
func (r *Rules) Explain(v any) *Fault {
	w := walker{Rules: r, trials: true}
	return w.dynamic(v, 0)
}

// walker traverses a value in the order of its encoding.
type walker struct {
	*Rules
	trials   bool // each part without parts of its own is encoded by itself
	own      bool // a part that encodes itself was found
	pointers int  // on the path to the value; bounded, because pointers may form a cycle
}

// dynamic checks a value of any type at the given depth.
func (w *walker) dynamic(v any, depth int) *Fault {
	if !w.trials {
		switch v := v.(type) {
		case nil, bool, int, int64, uint64, float64, []byte:
			return nil
		case string:
			return w.text(v)
		case []any:
			return w.list(v, depth+1)
		case map[string]any:
			return w.object(v, depth+1)
		}
	}
	if v == nil {
		return nil
	}
	to := reflect.ValueOf(v)
	return w.value(w.Plans.Of(to.Type()), to, depth)
}

func (w *walker) text(s string) *Fault {
	if !utf8.ValidString(s) {
		return NotUTF8()
	}
	return nil
}

func (w *walker) list(v []any, depth int) *Fault {
	if depth > w.Depth {
		return TooDeep(w.Depth)
	}
	for i := range v {
		if f := w.dynamic(v[i], depth); f != nil {
			return f.Within(among(i))
		}
	}
	return nil
}

func (w *walker) object(v map[string]any, depth int) *Fault {
	if depth > w.Depth {
		return TooDeep(w.Depth)
	}
	for k, elem := range v {
		f := w.text(k)
		if f == nil {
			f = w.dynamic(elem, depth)
		}
		if f != nil {
			return f.Within(named(k))
		}
	}
	return nil
}

// mostPointers is the number of pointers permitted on the path to a value, besides one for each
// level.
const mostPointers = 1000

// value checks v, at the given depth and with plan p.
func (w *walker) value(p *sizing.Plan, v reflect.Value, depth int) *Fault {
	if p.Kind == sizing.Pointer {
		if v.IsNil() {
			return nil
		}
		if w.pointers == mostPointers+w.Depth {
			return &Fault{Reason: "pointers lead to each other without end"}
		}
		w.pointers++
		f := w.value(p.Elem, v.Elem(), depth)
		w.pointers--
		return f
	}
	switch p.Kind {
	case sizing.Text:
		if f := w.text(v.String()); f != nil {
			return f
		}
		return w.try(v)
	case sizing.Time, sizing.Number, sizing.Own:
		w.own = w.own || p.Kind == sizing.Own
		levels, f := w.Special(p, v)
		if f == nil && depth+levels > w.Depth {
			f = TooDeep(w.Depth)
		}
		if f == nil {
			f = w.try(v)
		}
		return f
	case sizing.Slice, sizing.Array:
		return w.elements(p, v, depth+1)
	case sizing.Map:
		if m, ok := v.Interface().(map[string]any); ok && !w.trials {
			return w.object(m, depth+1)
		}
		return w.entries(p, v, depth+1)
	case sizing.Struct:
		return w.structure(p, v, depth+1)
	}
	if v.Kind() == reflect.Interface {
		if v.IsNil() {
			return nil
		}
		return w.dynamic(v.Elem().Interface(), depth)
	}
	return w.try(v)
}

// try encodes a part by itself.
func (w *walker) try(v reflect.Value) *Fault {
	if !w.trials {
		return nil
	}
	if _, err := w.Encode(pointer(v)); err != nil {
		return &Fault{Reason: "the value cannot be encoded", Err: err}
	}
	return nil
}

// pointer returns a pointer to v, or v if it has no address.
func pointer(v reflect.Value) any {
	if v.CanAddr() {
		return v.Addr().Interface()
	}
	return v.Interface()
}

func (w *walker) elements(p *sizing.Plan, v reflect.Value, depth int) *Fault {
	if p.Elem.Kind == sizing.Nothing && p.Elem.Type.Kind() == reflect.Uint8 {
		return nil // bytes have no parts
	}
	if p.Kind == sizing.Slice && v.IsNil() {
		return nil
	}
	if depth > w.Depth {
		return TooDeep(w.Depth)
	}
	if w.isPlain(p.Elem) {
		return nil
	}
	for i := range v.Len() {
		if f := w.value(p.Elem, v.Index(i), depth); f != nil {
			return f.Within(among(i))
		}
	}
	return nil
}

// isPlain reports whether every value of the type is carried exactly.
func (w *walker) isPlain(p *sizing.Plan) bool {
	return !w.trials && p.Kind == sizing.Nothing && p.Type.Kind() != reflect.Interface
}

func (w *walker) structure(p *sizing.Plan, v reflect.Value, depth int) *Fault {
	if depth > w.Depth {
		return TooDeep(w.Depth)
	}
	if len(p.Order) == 0 && Hides(p.Type) && !v.IsZero() {
		return Opaque(p.Type)
	}
	for i, elem := range p.Order {
		if w.isPlain(elem) {
			continue
		}
		field, ok := fieldOf(v, p.Places[i])
		if !ok {
			continue
		}
		if f := w.value(elem, field, depth); f != nil {
			return f.Within("." + p.Labels[i])
		}
	}
	return nil
}

// fieldOf returns a field of v. ok is false if the field is in an embedded struct behind a nil
// pointer.
func fieldOf(v reflect.Value, place []int) (field reflect.Value, ok bool) {
	for i, at := range place {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
		v = v.Field(at)
	}
	return v, true
}

// Hides reports whether a struct has fields, none of which is visible to a codec.
func Hides(t reflect.Type) bool {
	hidden := false
	for i := range t.NumField() {
		f := t.Field(i)
		if f.IsExported() || f.Anonymous {
			return false
		}
		hidden = hidden || f.Name != "_"
	}
	return hidden
}
