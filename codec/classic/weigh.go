package classic

import (
	"reflect"

	"github.com/asterisque-go/asterisque/internal/sizing"
)

var plans = &sizing.Plans{Rules: sizing.Rules{Kind: kindOf, Field: fieldOf, Blank: "classic"}}

// Weigh implements codec.Weigher.
func (c Codec) Weigh(data []byte, t reflect.Type, most int) int {
	w := weigher{itemReader: newReader(c, data), Tally: sizing.NewTally(most)}
	p := plans.Of(t)
	if len(data) > 0 && data[0] == paramsTag {
		w.params(p)
	} else {
		w.value(p, 0)
	}
	return w.Bytes()
}

func kindOf(t reflect.Type) (k sizing.Kind, ok bool) {
	if t == structType || t == mapType {
		return sizing.Any, true
	}
	return 0, false
}

// fieldOf selects the same fields as fields does.
func fieldOf(f reflect.StructField) (n sizing.Name, ok bool) {
	return sizing.Name{Name: f.Name}, f.IsExported() && f.Tag.Get("classic") != "-"
}

// weigher walks the values of data, once and in order. It stops where data is malformed.
type weigher struct {
	sizing.Tally
	itemReader
}

func (w *weigher) done() bool { return len(w.data) == 0 || w.Over() }

// params weighs the parameters of an Open, as decodeParams decodes them.
func (w *weigher) params(p *sizing.Plan) {
	w.tag()
	count := w.count()
	if w.err != nil {
		return
	}
	for depth := 0; p.Kind == sizing.Pointer && depth < MaxDepth && !w.Over(); depth++ {
		w.Add(sizing.Alloc(p.Elem.Size))
		p = p.Elem
	}
	switch {
	case p.Kind == sizing.Any:
		w.Add(sizing.Header)
		w.list(sizing.SlicePlan, count, 0)
	case p.Kind == sizing.Struct && p.Tagged == "", p == plans.Of(paramsType):
		w.list(p, count, 0)
	default:
		w.list(&sizing.Plan{Kind: sizing.Array, Len: 1, Elem: p}, count, -1)
	}
}

// value weighs one value that is nested depth deep and is decoded by plan p.
func (w *weigher) value(p *sizing.Plan, depth int) {
	if depth > MaxDepth {
		w.data = nil
	}
	if w.done() {
		return
	}
	if w.data[0] == nullTag {
		w.tag()
		return
	}
	for p.Kind == sizing.Pointer && !w.Over() {
		w.Add(sizing.Alloc(p.Elem.Size))
		p = p.Elem
	}
	if p.Kind == sizing.Any {
		w.loose(depth)
		return
	}
	tag := w.tag()
	w.Enter(depth)
	defer w.Leave(depth)
	switch tag {
	case stringTag, binaryTag:
		w.text(p, w.raw())
	case listTag:
		w.list(p, w.count(), depth)
	case mapTag:
		w.mapping(p, w.count(), depth)
	case structTag:
		w.text(p, w.raw())
		w.list(p, w.fields(), depth)
	default:
		w.skip(tag)
	}
}

// Sizes of the values that an any receives.
var (
	structSize = sizing.Alloc(int(structType.Size()))
	entrySize  = 2 * sizing.Iface
	sizeOfMore = sizing.Alloc(int(reflect.TypeFor[openMore]().Size()))
)

var textPlan = &sizing.Plan{Kind: sizing.Text}

// dynamic weighs the place of a value that is decoded without a type, and returns its plan.
func (w *weigher) dynamic(tag byte) *sizing.Plan {
	switch tag {
	case stringTag:
		w.Add(sizing.String)
		return textPlan
	case binaryTag:
		w.Add(sizing.Header)
		return textPlan
	case listTag, mapTag:
		w.Add(sizing.Header)
	case structTag:
		w.Add(structSize)
	case uuidTag:
		w.Add(len(UUID{}))
	default:
		w.Add(sizing.Word)
	}
	return sizing.NothingPlan
}

// text weighs a string or bytes. Invalid UTF-8 becomes longer.
func (w *weigher) text(p *sizing.Plan, b []byte) {
	if p.Kind == sizing.Nothing || p.Kind == sizing.Array {
		return
	}
	size := sizing.Replaced(b)
	if size > len(b) {
		size *= 2 // it is built in a slice that grows
	}
	w.Text(size)
}

// list weighs the n values of a list or of a struct.
func (w *weigher) list(p *sizing.Plan, n, depth int) {
	if n > len(w.data) {
		w.data = nil
		return
	}
	if p.Kind == sizing.Slice {
		w.Add(sizing.Alloc(sizing.Times(n, p.Elem.Size)))
	}
	for i := 0; i < n && !w.done(); i++ {
		switch {
		case p.Kind == sizing.Slice, p.Kind == sizing.Array && i < p.Len:
			w.value(p.Elem, depth+1)
		case p.Kind == sizing.Struct && i < len(p.Order):
			w.value(p.Order[i], depth+1)
		default:
			w.value(sizing.NothingPlan, depth+1)
		}
	}
}

// mapping weighs the n entries of a map.
func (w *weigher) mapping(p *sizing.Plan, n, depth int) {
	if 2*n > len(w.data) {
		w.data = nil
		return
	}
	key, value := sizing.NothingPlan, sizing.NothingPlan
	if p.Kind == sizing.Map {
		var m sizing.GrowingMap
		w.Add(sizing.MapSize)
		m.Make(&w.Tally, max(n, 1), p.Entry)
		if n > 0 {
			m.Put(&w.Tally, p.Entry)
		}
		w.Add(n * p.Aside)
		key, value = p.Key, p.Elem
	}
	for i := 0; i < n && !w.done(); i++ {
		w.value(key, depth+1)
		w.value(value, depth+1)
	}
}

// places adds the memory that finds duplicate keys, which is needed until the map is complete, and
// returns how much it was.
func (w *weigher) places(n int) int {
	const place, key = 16, 2 * sizing.Header // the keys are in a slice that grows
	before := w.Now()
	var m sizing.GrowingMap
	w.Add(sizing.MapSize + sizing.Alloc(n*key))
	m.Make(&w.Tally, n, place)
	m.Put(&w.Tally, place)
	return w.Now() - before
}
