package codec

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/asterisque-go/asterisque/internal/weigh"
)

// bigTypes are those whose values hold numbers of package big, the ones in interfaces aside.
var bigTypes = &weigh.Reach{Plans: jsonPlans, Want: func(p *weigh.Plan) bool { return p.Kind == weigh.Number }}

// hasLongNumberJSON reports whether a number in data is too long for what it becomes in v.
func hasLongNumberJSON(data []byte, v any) bool {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer || !bigTypes.From(t.Elem()) {
		return false
	}
	w := jsonWeigher{data: data, Tally: weigh.NewTally(math.MaxInt)}
	w.value(jsonPlans.Of(t.Elem()), 0)
	return w.long
}

func errLongJSON(data []byte, v any) error {
	if !json.Valid(data) {
		return &ValueError{Reason: "malformed JSON"}
	}
	// without trials: they would read it
	e := placeIn(v, func(t reflect.Type) *TypeError {
		x := jsonExplainer{jsonWeigher: jsonWeigher{data: data, Tally: weigh.NewTally(math.MaxInt)}}
		return x.found(x.value(jsonPlans.Of(t), 0))
	})
	if e == nil {
		e = &TypeError{Want: "a number of at most " + strconv.Itoa(longestDigits) + " digits", Got: "a longer one"}
	}
	e.Err = fmt.Errorf("to be decoded into a %T", v)
	return e
}
