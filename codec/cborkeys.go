package codec

import (
	"bytes"
	"math"
	"reflect"

	"github.com/asterisque-go/asterisque/internal/cborhead"
	"github.com/asterisque-go/asterisque/internal/encodable"
	"github.com/asterisque-go/asterisque/internal/sizing"
)

// The library behind CBOR finds duplicate keys by means of the Go map. NaN is not equal to itself,
// so a Go map accepts it any number of times: such keys are compared as bytes.

// nanKey is the memory for such a key of a few bytes.
const nanKey = 64

// remember weighs the memory for the key that begins at from, if the key may be NaN or contain NaN.
func (w *cborWeigher) remember(from int) {
	if w.at-from < len("\xf9\x7e\x00") {
		return
	}
	switch key := w.data[from:w.at]; key[0] &^ 31 {
	case cborhead.Array, cborhead.Map, cborhead.Tag, cborhead.Other:
		if mayHaveNaN(key) {
			w.Add(nanKey + sizing.Alloc(len(key)))
		}
	}
}

// looseTypes are the types with values that may hold a map with such keys, or a struct that is
// encoded as one.
var looseTypes = &sizing.Reach{Plans: cborPlans, Want: func(p *sizing.Plan) bool {
	return p.Kind == sizing.Any || p.Kind == sizing.Struct || p.Kind == sizing.Map && encodable.MayBeNaN(p.Key.Type)
}}

// hasNaNTwice reports whether a map in data, decoded into v, has two keys of the same bytes that
// are NaN, or hold one. It stops where data is malformed.
func hasNaNTwice(data []byte, v any) bool {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer || !looseTypes.From(t.Elem()) || !mayHaveNaN(data) {
		return false
	}
	f := nanFinder{cborWeigher: cborWeigher{data: data, Tally: sizing.NewTally(math.MaxInt)}}
	f.item(0)
	return f.twice
}

// mayHaveNaN searches for the initial bytes of NaN.
func mayHaveNaN(data []byte) bool {
	for _, head := range []byte{half, single, double} {
		for rest := data; ; {
			i := bytes.IndexByte(rest, head)
			if i < 0 {
				break
			}
			if rest = rest[i+1:]; isNaN(head, rest) {
				return true
			}
		}
	}
	return false
}

// Initial bytes of floating-point numbers.
const half, single, double = cborhead.Other | 25, cborhead.Other | 26, cborhead.Other | 27

// isNaN reports whether head, the initial byte of an item, and rest, the bytes behind it, are NaN.
func isNaN(head byte, rest []byte) bool {
	if len(rest) < 2 {
		return false
	}
	first := uint16(rest[0])<<8 | uint16(rest[1])
	switch head {
	case half:
		return first&0x7fff > 0x7c00
	case single:
		return len(rest) >= 4 && first&0x7f80 == 0x7f80 && (first&0x7f|uint16(rest[2])|uint16(rest[3])) != 0
	case double:
		return len(rest) >= 8 && first&0x7ff0 == 0x7ff0 && (first&0xf != 0 || !bytes.Equal(rest[2:8], zeros[:]))
	}
	return false
}

var zeros [6]byte

// nanNext reports whether the next item is NaN.
func (w *cborWeigher) nanNext() bool { return w.left() > 0 && isNaN(w.data[w.at], w.data[w.at+1:]) }

// nanFinder walks the items of data.
type nanFinder struct {
	cborWeigher
	twice bool
}

// item skips an item that is nested depth deep, and reports whether it is NaN or holds one.
func (f *nanFinder) item(depth int) (nan bool) {
	f.tags()
	if nan = f.nanNext(); depth > cborDepth {
		f.end()
	}
	major, n, endless := f.head()
	switch major {
	case cborhead.Bytes, cborhead.Text:
		f.pass(n, endless)
	case cborhead.Array:
		for i := 0; f.more(i, n, endless); i++ {
			nan = f.item(depth+1) || nan
		}
	case cborhead.Map:
		nan = f.entries(n, endless, depth+1)
	}
	return nan
}

func (f *nanFinder) entries(n uint64, endless bool, depth int) (nan bool) {
	var seen map[string]struct{}
	for i := 0; f.more(i, n, endless); i++ {
		from := f.at
		if f.item(depth) {
			key := f.data[from:f.at]
			if _, f.twice = seen[string(key)]; f.twice {
				f.end()
				return false
			}
			if seen == nil {
				seen = make(map[string]struct{})
			}
			seen[string(key)], nan = struct{}{}, true
		}
		nan = f.item(depth) || nan
	}
	return nan
}
