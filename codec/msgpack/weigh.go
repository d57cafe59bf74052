package msgpack

import (
	"bytes"
	"math"
	"reflect"

	"github.com/asterisque-go/asterisque/internal/sizing"
)

// weigher walks the items of data, once and in their order.
type weigher struct {
	sizing.Tally
	itemReader
}

const (
	digitsOfBig = 48 // memory of a big.Int of 64 bits besides itself
	sizeOfExt   = 32
	sizeOfNaN   = 64            // a key of a few bytes that is remembered, for it may be NaN
	stranger    = sizing.String // an entry in the set of the keys that no field of a struct has
)

// First bytes of items.
const float32Head, float64Head = 0xca, 0xcb

// end is called where data is malformed.
func (w *weigher) end() { w.at = len(w.data) }

// pass moves behind an item that takes no memory, or a known amount.
func (w *weigher) pass(depth int) {
	if w.skip(depth) != nil {
		w.end()
	}
}

// value weighs one item that is nested depth deep and is decoded by plan p.
func (w *weigher) value(p *sizing.Plan, depth int) {
	h := w.peek()
	if h.kind == isMalformed || w.Over() {
		w.end()
		return
	}
	if h.kind == isNil {
		w.item(h)
		return
	}
	for p.Kind == sizing.Pointer && !w.Over() {
		w.Add(sizing.Alloc(p.Elem.Size))
		p = p.Elem
	}
	from := w.at
	switch {
	case p.Kind == sizing.Any:
		w.free(h, depth)
	case p.Kind == sizing.Own:
		w.pass(depth)
		w.Text(w.at - from)
	case p.Kind == sizing.Number:
		w.pass(depth)
		w.Add(digitsOfBig)
	case p.Kind == sizing.Text && h.kind == isText, p.Kind == sizing.Slice && h.kind == isBytes:
		w.pass(depth)
		w.Text(h.n)
	case depth == depthMost || h.kind != isArray && h.kind != isMap:
		w.pass(depth)
	default:
		w.several(p, h, depth+1)
	}
}

// several weighs an array or a map. Its items are nested depth deep.
func (w *weigher) several(p *sizing.Plan, h itemHead, depth int) {
	switch {
	case h.kind == isArray && p.Kind == sizing.Slice && !isBytesPlan(p):
		w.Add(sizing.Alloc(sizing.Times(h.n, p.Elem.Size)))
		fallthrough
	case h.kind == isArray && p.Kind == sizing.Array:
		w.item(h)
		for range h.n {
			w.value(p.Elem, depth)
		}
	case h.kind == isMap && p.Kind == sizing.Map:
		w.entries(p, h, depth)
	case h.kind == isMap && p.Kind == sizing.Struct:
		w.structure(p, h, depth)
	default:
		w.pass(depth - 1)
	}
}

// isBytesPlan reports whether p is for a slice of bytes, which no array matches.
func isBytesPlan(p *sizing.Plan) bool {
	return p.Elem.Type != nil && p.Elem.Type.Kind() == reflect.Uint8
}

// entries weighs an item that is decoded as a map.
func (w *weigher) entries(p *sizing.Plan, h itemHead, depth int) {
	w.item(h)
	one := sizing.Alloc(p.Key.Size) + sizing.Alloc(p.Elem.Size) // an entry before it is in the map
	w.Add(sizing.MapSize + one)
	var m sizing.GrowingMap
	m.Make(&w.Tally, h.n, p.Entry)
	for range h.n {
		m.Put(&w.Tally, p.Entry)
		w.Add(p.Aside)
		from, key := w.at, w.peek()
		w.value(p.Key, depth)
		w.remember(key, from)
		w.value(p.Elem, depth)
	}
	w.Drop(one)
}

// remember weighs the memory for a key with the head h that begins at from, if the key may be NaN
// or contain NaN.
func (w *weigher) remember(h itemHead, from int) {
	switch h.kind {
	case isFloat:
		w.Add(sizeOfNaN)
	case isArray, isMap:
		if key := w.data[from:w.at]; bytes.IndexByte(key, float32Head) >= 0 || bytes.IndexByte(key, float64Head) >= 0 {
			w.Add(sizeOfNaN + sizing.Alloc(len(key)))
		}
	}
}

// structure weighs a map that becomes a struct.
func (w *weigher) structure(p *sizing.Plan, h itemHead, depth int) {
	w.item(h)
	w.Add(p.Extra + len(p.Order))
	var strangers sizing.GrowingMap
	names := 0
	for range h.n {
		from, key := w.at, w.peek()
		var f *sizing.Plan
		if key.kind == isText {
			_, name := w.item(key)
			f = p.Fields[string(name)]
		} else {
			w.pass(depth)
		}
		if f == nil {
			size := sizing.Alloc(w.at - from)
			names += size
			w.Add(size)
			strangers.Put(&w.Tally, stranger)
			w.pass(depth)
			continue
		}
		w.value(f, depth)
	}
	w.Drop(strangers.Bytes() + names)
}

// free weighs an item that is decoded without a type.
func (w *weigher) free(h itemHead, depth int) {
	if depth == depthMost || h.kind != isArray && h.kind != isMap {
		w.boxed(h)
		w.pass(depth)
		return
	}
	if h.kind == isArray {
		w.Add(sizing.Header)
		w.several(sizing.SlicePlan, h, depth+1)
		return
	}
	w.entries(mapOfAny, h, depth+1)
}

// mapOfAny is the plan of a map that is decoded without a type.
var mapOfAny = sizing.MapPlan(sizing.AnyPlan)

// boxed weighs an item in an interface.
func (w *weigher) boxed(h itemHead) {
	switch h.kind {
	case isInteger:
		if n := integerOf(w.data[w.at : w.at+h.size]); n.bits > math.MaxUint8 {
			w.Add(sizing.Word)
		}
	case isFloat:
		w.Add(sizing.Word)
	case isText:
		w.Add(sizing.String)
		w.Text(h.n)
	case isBytes:
		w.Add(sizing.Header)
		w.Text(h.n)
	case isExt:
		w.Add(sizeOfExt)
		w.Text(h.n)
	}
}
