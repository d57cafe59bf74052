package codec

import (
	"math"

	"github.com/asterisque-go/asterisque/internal/item"
	"github.com/asterisque-go/asterisque/internal/weigh"
)

// anyMap is the plan of a map that is decoded without a type.
var anyMap = weigh.MapPlan(weigh.AnyPlan)

// any weighs an item that is decoded without a type, behind the given number of tags.
func (w *cborWeigher) any(first uint64, tags, depth int) {
	w.Add(tags * (weigh.Header + weigh.Iface)) // each of them is a value
	major, from := w.data[w.at]&^31, w.at
	switch {
	case first <= timeNumber && tags > 0:
		w.Add(weigh.Header)
		w.item(timePlan, depth)
	case first <= negativeBignum && tags > 0:
		w.item(weigh.NothingPlan, depth)
		w.Add(bigSize + bigDigits + weigh.Alloc(w.at-from))
	default:
		w.dynamic(major, depth)
	}
}

// dynamic weighs an item of any type.
func (w *cborWeigher) dynamic(major byte, depth int) {
	switch major {
	case item.Unsigned, item.Negative:
		if _, n, _ := w.head(); n > math.MaxInt64 && major == item.Negative {
			w.Add(bigSize + bigDigits)
		} else if n > math.MaxUint8 || major == item.Negative {
			w.Add(weigh.Word)
		}
	case item.Bytes:
		w.Add(weigh.Header)
		w.item(textPlan, depth)
	case item.Text:
		w.Add(weigh.String)
		w.item(textPlan, depth)
	case item.Array:
		w.Add(weigh.Header)
		w.item(weigh.SlicePlan, depth)
	case item.Map:
		w.item(anyMap, depth)
	default:
		if w.data[w.at]&31 > 24 { // a floating-point number
			w.Add(weigh.Word)
		}
		w.item(weigh.NothingPlan, depth)
	}
}

// Plans of values that are decoded without a type.
var (
	textPlan = &weigh.Plan{Kind: weigh.Text}
	timePlan = &weigh.Plan{Kind: weigh.Time}
)
