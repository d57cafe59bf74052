package codec

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/asterisque-go/asterisque/internal/sizing"
)

// slowTypes are the types with values that hold numbers of package big, except those in interfaces,
// or that decode themselves.
var slowTypes = &sizing.Reach{Plans: jsonPlans, Want: func(p *sizing.Plan) bool { return p.Kind == sizing.Number || nests(p) }}

// nests reports whether p is for a type that decodes itself, and that may contain values that do
// so. Such a method usually calls encoding/json, which finds the end of a value before it calls the
// method of that value: so the content of a value is read once more for each level.
func nests(p *sizing.Plan) bool {
	return p.Kind == sizing.Own && p.Type != rawMessage && reflect.PointerTo(p.Type).Implements(reflect.TypeFor[json.Unmarshaler]())
}

var rawMessage = reflect.TypeFor[json.RawMessage]() // it only copies

// owned weighs a value that decodes itself, which begins with c.
func (w *jsonWeigher) owned(p *sizing.Plan, c byte, depth int) {
	if p.Type == rawMessage {
		w.concrete(sizing.NothingPlan, c, depth)
		return
	}
	w.own++
	w.concrete(sizing.NothingPlan, c, depth)
	w.own--
}

// The bytes that may be read again: rereadTimes the data, and rereadPlus.
const rereadTimes, rereadPlus = 32, 16 << 20

// again counts an array or an object of n bytes, which is read again if it is inside a type that
// decodes itself.
func (w *jsonWeigher) again(n int) {
	if w.own == 0 {
		return
	}
	if w.reread += n; w.reread > rereadTimes*len(w.data)+rereadPlus {
		w.deep = true
		w.end()
	}
}

// slowJSON returns the reason if decoding data into v would take too long, or nil.
func slowJSON(data []byte, v any) error {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer || !slowTypes.From(t.Elem()) {
		return nil
	}
	w := jsonWeigher{data: data, Tally: sizing.NewTally(math.MaxInt)}
	w.value(jsonPlans.Of(t.Elem()), 0)
	switch {
	case w.long:
		return errLongJSON(data, v)
	case w.deep:
		return &ValueError{
			Reason: fmt.Sprintf("values are nested too deeply for a type that decodes itself: each byte would be read %d times or more", rereadTimes),
			Err:    fmt.Errorf("to be decoded into a %T: without a method UnmarshalJSON it would be read once", v),
		}
	}
	return nil
}

func errLongJSON(data []byte, v any) error {
	if !json.Valid(data) {
		return &ValueError{Reason: "malformed JSON"}
	}
	// without attempts: they would read the number
	e := placeIn(v, func(t reflect.Type) *TypeError {
		x := jsonExplainer{jsonWeigher: jsonWeigher{data: data, Tally: sizing.NewTally(math.MaxInt)}}
		return x.found(x.value(jsonPlans.Of(t), 0))
	})
	if e == nil {
		e = &TypeError{Want: "a number of at most " + strconv.Itoa(longestDigits) + " digits", Got: "a longer one"}
	}
	e.Err = fmt.Errorf("to be decoded into a %T", v)
	return e
}
