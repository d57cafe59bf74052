package classic

import (
	"reflect"

	"github.com/asterisque-go/asterisque/internal/weigh"
)

var plans = &weigh.Plans{Rules: weigh.Rules{Kind: kindOf, Field: fieldOf, Blank: "classic"}}

// Weigh implements codec.Weigher.
func (c Codec) Weigh(data []byte, t reflect.Type, most int) int {
	w := weigher{itemReader: newReader(c, data), Tally: weigh.NewTally(most)}
	p := plans.Of(t)
	if len(data) > 0 && data[0] == paramsTag {
		w.params(p)
	} else {
		w.value(p, 0)
	}
	return w.Bytes()
}

func kindOf(t reflect.Type) (k weigh.Kind, ok bool) {
	if t == structType || t == mapType {
		return weigh.Any, true
	}
	return 0, false
}

// fieldOf selects the same fields as fields does.
func fieldOf(f reflect.StructField) (n weigh.Name, ok bool) {
	return weigh.Name{Name: f.Name}, f.IsExported() && f.Tag.Get("classic") != "-"
}

// weigher walks the values of data, once and in order. It stops where data is malformed.
type weigher struct {
	weigh.Tally
	itemReader
}

func (w *weigher) done() bool { return len(w.data) == 0 || w.Over() }

// params weighs the parameters of an Open, as decodeParams decodes them.
func (w *weigher) params(p *weigh.Plan) {
	w.tag()
	count := w.count()
	if w.err != nil {
		return
	}
	for depth := 0; p.Kind == weigh.Pointer && depth < MaxDepth && !w.Over(); depth++ {
		w.Add(weigh.Alloc(p.Elem.Size))
		p = p.Elem
	}
	switch {
	case p.Kind == weigh.Any:
		w.Add(weigh.Header)
		w.list(weigh.SlicePlan, count, 0)
	case p.Kind == weigh.Struct && p.Tagged == "", p == plans.Of(paramsType):
		w.list(p, count, 0)
	default:
		w.list(&weigh.Plan{Kind: weigh.Array, Len: 1, Elem: p}, count, -1)
	}
}

// value weighs one value that is nested depth deep and is decoded by plan p.
func (w *weigher) value(p *weigh.Plan, depth int) {
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
	for p.Kind == weigh.Pointer && !w.Over() {
		w.Add(weigh.Alloc(p.Elem.Size))
		p = p.Elem
	}
	if p.Kind == weigh.Any {
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
	structSize = weigh.Alloc(int(structType.Size()))
	entrySize  = 2 * weigh.Iface
	sizeOfMore = weigh.Alloc(int(reflect.TypeFor[openMore]().Size()))
)

var textPlan = &weigh.Plan{Kind: weigh.Text}

// dynamic weighs the place of a value that is decoded without a type, and returns its plan.
func (w *weigher) dynamic(tag byte) *weigh.Plan {
	switch tag {
	case stringTag:
		w.Add(weigh.String)
		return textPlan
	case binaryTag:
		w.Add(weigh.Header)
		return textPlan
	case listTag, mapTag:
		w.Add(weigh.Header)
	case structTag:
		w.Add(structSize)
	case uuidTag:
		w.Add(len(UUID{}))
	default:
		w.Add(weigh.Word)
	}
	return weigh.NothingPlan
}

// text weighs a string or bytes. Invalid UTF-8 becomes longer.
func (w *weigher) text(p *weigh.Plan, b []byte) {
	if p.Kind == weigh.Nothing || p.Kind == weigh.Array {
		return
	}
	size := weigh.Replaced(b)
	if size > len(b) {
		size *= 2 // it is built in a slice that grows
	}
	w.Text(size)
}

// list weighs the n values of a list or of a struct.
func (w *weigher) list(p *weigh.Plan, n, depth int) {
	if n > len(w.data) {
		w.data = nil
		return
	}
	if p.Kind == weigh.Slice {
		w.Add(weigh.Alloc(weigh.Times(n, p.Elem.Size)))
	}
	for i := 0; i < n && !w.done(); i++ {
		switch {
		case p.Kind == weigh.Slice, p.Kind == weigh.Array && i < p.Len:
			w.value(p.Elem, depth+1)
		case p.Kind == weigh.Struct && i < len(p.Order):
			w.value(p.Order[i], depth+1)
		default:
			w.value(weigh.NothingPlan, depth+1)
		}
	}
}

// mapping weighs the n entries of a map.
func (w *weigher) mapping(p *weigh.Plan, n, depth int) {
	if 2*n > len(w.data) {
		w.data = nil
		return
	}
	key, value := weigh.NothingPlan, weigh.NothingPlan
	if p.Kind == weigh.Map {
		var m weigh.GrowingMap
		w.Add(weigh.MapSize)
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

// places weighs the memory for finding duplicate keys, which is needed until the map is complete,
// and returns its size.
func (w *weigher) places(n int) int {
	const place, key = 16, 2 * weigh.Header // the keys are in a slice that grows
	before := w.Now()
	var m weigh.GrowingMap
	w.Add(weigh.MapSize + weigh.Alloc(n*key))
	m.Make(&w.Tally, n, place)
	m.Put(&w.Tally, place)
	return w.Now() - before
}
