package codec

import (
	"math"

	"github.com/asterisque-go/asterisque/internal/cborhead"
	"github.com/asterisque-go/asterisque/internal/sizing"
)

// cborDepth is the maximum nesting of values.
const cborDepth = 32

// Initial bytes of items of indefinite length, and their end.
const (
	indefinite = 31
	undefined  = cborhead.Other | 23
	breakByte  = cborhead.Other | indefinite
)

// Numbers of tags with a meaning in the library.
const (
	timeText, timeNumber   = 0, 1
	bignum, negativeBignum = 2, 3
	selfDescribed          = 55799
	noTag                  = math.MaxUint64
)

// bigSize is the size of a big.Int itself. bigDigits is its further memory, without the received
// digits.
const bigSize, bigDigits = 32, 48

// cborWeigher walks the items of data, once and in their order.
type cborWeigher struct {
	sizing.Tally
	data []byte
	at   int    // the next byte; len(data) after an error
	name []byte // of a field in several pieces
	long bool   // a number was too long for its type
}

func (w *cborWeigher) done() bool { return w.at >= len(w.data) || w.Over() }

// end is called if data is malformed.
func (w *cborWeigher) end() { w.at = len(w.data) }

func (w *cborWeigher) left() int { return len(w.data) - w.at }

// head reads the head of an item, in any form.
func (w *cborWeigher) head() (major byte, n uint64, endless bool) {
	if w.left() == 0 {
		return cborhead.Other, 0, false
	}
	b := w.data[w.at]
	w.at++
	low := b & 31
	if low < 24 {
		return b &^ 31, uint64(low), false
	}
	size := 1 << (low & 3)
	if low > 27 || w.left() < size {
		if low != indefinite {
			w.end()
		}
		return b &^ 31, 0, low == indefinite
	}
	for _, b := range w.data[w.at : w.at+size] {
		n = n<<8 | uint64(b)
	}
	w.at += size
	return b &^ 31, n, false
}

// tags reads the tags before an item, and returns the first and the last and their number, without
// those that only mark CBOR.
func (w *cborWeigher) tags() (first, last uint64, count int) {
	first, last = noTag, noTag
	for w.left() > 0 && w.data[w.at]&^31 == cborhead.Tag {
		_, n, _ := w.head()
		if count == 0 && n == selfDescribed {
			continue
		}
		if count++; count == 1 {
			first = n
		}
		last = n
	}
	return first, last, count
}

// value weighs one item that is nested depth deep and is decoded by plan p.
func (w *cborWeigher) value(p *sizing.Plan, depth int) {
	from := w.at
	first, last, tags := w.tags()
	if w.done() {
		return
	}
	if b := w.data[w.at]; tags == 0 && (b == cborhead.Null || b == undefined) {
		w.at++
		return
	}
	for p.Kind == sizing.Pointer && !w.Over() {
		w.Add(sizing.Alloc(p.Elem.Size))
		p = p.Elem
	}
	switch p.Kind {
	case sizing.Any:
		w.any(first, tags, depth)
	case sizing.Own: // it gets the tags as well
		w.item(sizing.NothingPlan, depth)
		w.Text(w.at - from)
	case sizing.Number:
		from = w.at
		w.item(sizing.NothingPlan, depth)
		w.Add(bigDigits + sizing.Alloc(w.at-from))
	default:
		from = w.at
		w.item(p, depth)
		w.number(p, last, w.at-from)
	}
}

// item weighs one item without tags, decoded by plan p.
func (w *cborWeigher) item(p *sizing.Plan, depth int) {
	major, n, endless := w.head()
	switch major {
	case cborhead.Bytes, cborhead.Text:
		w.text(p, n, endless)
	case cborhead.Array:
		w.array(p, n, endless, depth+1)
	case cborhead.Map:
		w.mapping(p, n, endless, depth+1)
	}
}

// text weighs a string.
func (w *cborWeigher) text(p *sizing.Plan, n uint64, endless bool) {
	size := w.pass(n, endless)
	switch p.Kind {
	case sizing.Nothing, sizing.Array:
	case sizing.Time:
		w.Add(sizing.Zone)
	default:
		w.Text(size)
	}
	if endless && p.Kind != sizing.Nothing { // it is joined first
		w.Text(2 * size)
	}
}

// pass skips a string with length n, and returns its size.
func (w *cborWeigher) pass(n uint64, endless bool) (size int) {
	if !endless {
		if n > uint64(w.left()) {
			w.end()
			return 0
		}
		w.at += int(n)
		return int(n)
	}
	for w.more(0, 0, true) {
		_, n, again := w.head()
		if again || n > uint64(w.left()) {
			w.end()
			return size
		}
		w.name = w.keep(w.data[w.at : w.at+int(n)])
		w.at += int(n)
		size += int(n)
	}
	return size
}

// more reports whether an array or a map of n items, or an endless one, has an i-th.
func (w *cborWeigher) more(i int, n uint64, endless bool) bool {
	if w.done() {
		return false
	}
	if !endless {
		return uint64(i) < n
	}
	if w.data[w.at] == breakByte {
		w.at++
		return false
	}
	return true
}

// fits reports whether n items may follow.
func (w *cborWeigher) fits(n uint64, depth int) bool {
	if n > uint64(w.left()) || depth > cborDepth {
		w.end()
		return false
	}
	return true
}

func (w *cborWeigher) array(p *sizing.Plan, n uint64, endless bool, depth int) {
	if !w.fits(n, depth) {
		return
	}
	if p.Kind == sizing.Slice {
		w.Add(sizing.Alloc(sizing.Times(int(n), p.Elem.Size)))
	}
	for i := 0; w.more(i, n, endless); i++ {
		switch {
		case p.Kind == sizing.Slice:
			if endless {
				w.Add(p.Elem.Size)
			}
			w.value(p.Elem, depth)
		case p.Kind == sizing.Array && i < p.Len:
			w.value(p.Elem, depth)
		case p.Kind == sizing.Struct && i < len(p.Order):
			if i == 0 {
				w.Add(p.Extra)
			}
			w.value(p.Order[i], depth)
		default:
			w.value(sizing.NothingPlan, depth)
		}
	}
}

func (w *cborWeigher) mapping(p *sizing.Plan, n uint64, endless bool, depth int) {
	if !w.fits(n, depth) || !w.fits(2*n, depth) {
		return
	}
	switch p.Kind {
	case sizing.Map:
		w.entries(p, n, endless, depth)
	case sizing.Struct:
		w.structure(p, n, endless, depth)
	default:
		for i := 0; w.more(i, 2*n, endless); i++ {
			w.value(sizing.NothingPlan, depth)
		}
	}
}

// entries weighs an item that is decoded as a map.
func (w *cborWeigher) entries(p *sizing.Plan, n uint64, endless bool, depth int) {
	var m sizing.GrowingMap
	w.Add(sizing.MapSize)
	if p != anyMap {
		m.Make(&w.Tally, int(n), p.Entry)
	}
	for i := 0; w.more(i, n, endless); i++ {
		m.Put(&w.Tally, p.Entry)
		w.Add(p.Aside)
		from := w.at
		w.value(p.Key, depth)
		w.remember(from)
		w.value(p.Elem, depth)
	}
}

// unknown is the size of an entry in the map of unknown keys of a struct. The library keeps that
// map until the struct is complete, to find duplicate keys.
const unknown = 24

// structure weighs a map that is decoded as a struct.
func (w *cborWeigher) structure(p *sizing.Plan, n uint64, endless bool, depth int) {
	w.Add(p.Extra)
	var strangers sizing.GrowingMap
	keys := 0
	for i := 0; w.more(i, n, endless); i++ {
		before := w.Now()
		f := w.field(p, depth)
		if f == nil {
			keys += w.Now() - before
			strangers.Put(&w.Tally, unknown)
			f = sizing.NothingPlan
		}
		w.value(f, depth)
	}
	w.Drop(strangers.Bytes() + keys)
}

// field reads the key of a field and returns its plan. Without one it is nil, and the key is
// weighed.
func (w *cborWeigher) field(p *sizing.Plan, depth int) (f *sizing.Plan) {
	from := w.at
	switch major := w.data[w.at] &^ 31; major {
	case cborhead.Text:
		if f = p.Fields[string(w.key())]; f == nil {
			w.Add(sizing.String + sizing.Alloc(w.at-from))
		}
	case cborhead.Unsigned, cborhead.Negative:
		_, n, _ := w.head()
		number := int64(n)
		if major == cborhead.Negative {
			number = ^number
		}
		if f = p.Numbers[number]; f == nil {
			w.Add(sizing.Word)
		}
	default:
		w.value(sizing.AnyPlan, depth)
		w.remember(from)
	}
	return f
}

// key reads a text.
func (w *cborWeigher) key() []byte {
	_, n, endless := w.head()
	w.name = w.name[:0]
	size := w.pass(n, endless)
	if !endless {
		return w.data[w.at-size : w.at]
	}
	return w.name
}

// keep appends part to the name of a field, as far as that can be one.
func (w *cborWeigher) keep(part []byte) []byte {
	const longest = 256
	if len(w.name)+len(part) > longest {
		return w.name
	}
	return append(w.name, part...)
}

// longestNumber is the size, in bytes, of the longest number that is accepted for any type but a
// big.Int. A longer one never fits, but the library would print all of its digits, in a time that
// grows with the square of the size.
const longestNumber = 256

// number records a number of size bytes behind the given tag, if it is too long for its type.
func (w *cborWeigher) number(p *sizing.Plan, tag uint64, size int) {
	if tag != bignum && tag != negativeBignum || size <= longestNumber || p == sizing.NothingPlan {
		return
	}
	if p.Kind != sizing.Slice && p.Kind != sizing.Array { // these take its bytes
		w.long = true
		w.end()
	}
}
