package codec

import (
	"math"

	"github.com/asterisque-go/asterisque/internal/cborhead"
	"github.com/asterisque-go/asterisque/internal/sizing"
)

// anyMap is the plan of a map that is decoded without a type.
var anyMap = sizing.MapPlan(sizing.AnyPlan)

// any weighs an item that is decoded without a type, behind the given number of tags.
func (w *cborWeigher) any(first uint64, tags, depth int) {
	w.Add(tags * (sizing.Header + sizing.Iface)) // each of them is a value
	major, from := w.data[w.at]&^31, w.at
	switch {
	case first <= timeNumber && tags > 0:
		w.Add(sizing.Header)
		w.item(timePlan, depth)
	case first <= negativeBignum && tags > 0:
		w.item(sizing.NothingPlan, depth)
		w.Add(bigSize + bigDigits + sizing.Alloc(w.at-from))
	default:
		w.dynamic(major, depth)
	}
}

// dynamic weighs an item of any type.
func (w *cborWeigher) dynamic(major byte, depth int) {
	switch major {
	case cborhead.Unsigned, cborhead.Negative:
		if _, n, _ := w.head(); n > math.MaxInt64 && major == cborhead.Negative {
			w.Add(bigSize + bigDigits)
		} else if n > math.MaxUint8 || major == cborhead.Negative {
			w.Add(sizing.Word)
		}
	case cborhead.Bytes:
		w.Add(sizing.Header)
		w.item(textPlan, depth)
	case cborhead.Text:
		w.Add(sizing.String)
		w.item(textPlan, depth)
	case cborhead.Array:
		w.Add(sizing.Header)
		w.item(sizing.SlicePlan, depth)
	case cborhead.Map:
		w.item(anyMap, depth)
	default:
		if w.data[w.at]&31 > 24 { // a floating-point number
			w.Add(sizing.Word)
		}
		w.item(sizing.NothingPlan, depth)
	}
}

// Plans of values that are decoded without a type.
var (
	textPlan = &sizing.Plan{Kind: sizing.Text}
	timePlan = &sizing.Plan{Kind: sizing.Time}
)
