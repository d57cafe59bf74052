package codec

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"

	"github.com/asterisque-go/asterisque/internal/sizing"
	"github.com/asterisque-go/asterisque/internal/truncate"
)

// jsonExplainer walks the values of data, which is well-formed.
type jsonExplainer struct {
	explainer
	jsonWeigher
}

// explainJSON returns the first mismatch of data with a t, or nil if it is not found.
func explainJSON(data []byte, t reflect.Type) *TypeError {
	x := jsonExplainer{explainer{trials: mostTrials}, jsonWeigher{data: data, Tally: sizing.NewTally(math.MaxInt)}}
	return x.found(x.value(jsonPlans.Of(t), 0))
}

// roundedIn returns the place of an integer in data that was changed when it was decoded into v, or
// nil.
func roundedIn(data []byte, v any) *TypeError {
	if !mayBeRounded(data) {
		return nil
	}
	return placeIn(v, func(t reflect.Type) *TypeError {
		// without attempts: everything else matches
		x := jsonExplainer{jsonWeigher: jsonWeigher{data: data, Tally: sizing.NewTally(math.MaxInt)}}
		return x.found(x.value(jsonPlans.Of(t), 0))
	})
}

// value returns the mismatch of the next value with p, or nil, and skips the value.
func (x *jsonExplainer) value(p *sizing.Plan, depth int) *TypeError {
	c, from := x.next(), x.at
	isNull := c == 'n' && p.Kind != sizing.Own // it matches types that do not decode themselves
	p = pointedTo(p)
	switch {
	case c == '[' && (p.Kind == sizing.Slice || p.Kind == sizing.Array || p.Kind == sizing.Any):
		return x.array(p, depth+1)
	case c == '{' && (p.Kind == sizing.Struct || p.Kind == sizing.Map || p.Kind == sizing.Any):
		return x.object(p, depth+1)
	}
	x.jsonWeigher.value(skipped, depth)
	if isNull || p == skipped {
		return nil
	}
	item := x.data[from:x.at]
	if p.Kind == sizing.Any {
		return rounded(item)
	}
	if e := longNumber(p, item); e != nil {
		return e
	}
	if x.trials == 0 {
		return nil
	}
	if p.Quoted {
		quoted := item
		if item = unquoted(item); item == nil {
			return mismatch(jsonWant(p), jsonGot(quoted))
		}
	}
	if x.takes(item, p.Type, json.Unmarshal) {
		return nil
	}
	return jsonMismatch(p, item)
}

// unquoted returns the value inside a string, for the option string of a tag: a number or the like.
// For anything else it returns nil.
func unquoted(item []byte) []byte {
	var s string
	if json.Unmarshal(item, &s) != nil || !json.Valid([]byte(s)) {
		return nil
	}
	return []byte(s)
}

func (x *jsonExplainer) array(p *sizing.Plan, depth int) *TypeError {
	x.at++
	for i := 0; x.follows(']', i == 0); i++ {
		elem := skipped
		switch {
		case p.Kind == sizing.Any:
			elem = p
		case p.Kind == sizing.Slice, i < p.Len:
			elem = p.Elem
		}
		if e := x.value(elem, depth); e != nil {
			x.in(among(i))
			return e
		}
	}
	return nil
}

func (x *jsonExplainer) object(p *sizing.Plan, depth int) *TypeError {
	x.at++
	for i := 0; x.follows('}', i == 0); i++ {
		x.next()
		from := x.at
		raw, _ := x.quoted()
		name := unescape(nil, truncate.Text(raw, longestName))
		elem, part := p.Elem, key
		switch p.Kind {
		case sizing.Any:
			elem = p
		case sizing.Struct:
			part = field
			if elem = p.Field(name); elem == nil {
				elem = skipped
			}
		default:
			if e := x.mapKey(p, x.data[from:x.at]); e != nil {
				x.in(keyOf(i))
				return e
			}
		}
		x.next()
		x.at++ // the colon
		if e := x.value(elem, depth); e != nil {
			x.in(part(name))
			return e
		}
	}
	return nil
}

// mapKey returns the mismatch of a key, or nil.
func (x *jsonExplainer) mapKey(p *sizing.Plan, quoted []byte) *TypeError {
	t := p.Type.Key()
	if t.Kind() == reflect.String && p.Key.Kind == sizing.Text {
		return nil
	}
	alone := append(append([]byte("{"), quoted...), ":null}"...)
	if x.takes(alone, reflect.MapOf(t, reflect.TypeFor[any]()), json.Unmarshal) {
		return nil
	}
	if name, ok := whole(t); ok {
		return &TypeError{Want: name, Got: "another text"}
	}
	return &TypeError{Want: "a key in a form of its own", Got: "another one"}
}

// jsonMismatch returns the error for a value that does not match p.
func jsonMismatch(p *sizing.Plan, item []byte) *TypeError {
	got := jsonGot(item)
	if name, ok := whole(p.Type); ok && got == "a number" {
		return &TypeError{Want: name, Got: string(truncate.Text(item, mostName))}
	}
	return mismatch(jsonWant(p), got)
}

// jsonWant names the item expected for p.
func jsonWant(p *sizing.Plan) string {
	t := p.Type
	kind := t.Kind()
	_, isWhole := whole(t)
	switch {
	case p.Kind == sizing.Time:
		return "a string (date)"
	case p.Kind == sizing.Own, p.Kind == sizing.Number:
		return "a value in a form of its own"
	case p.Quoted:
		return "a string with a value in it"
	case isWhole, kind == reflect.Float32, kind == reflect.Float64, t == reflect.TypeFor[json.Number]():
		return "a number"
	case kind == reflect.Bool:
		return "a boolean"
	case kind == reflect.String:
		return "a string"
	case kind == reflect.Slice && isBytes(t):
		return "a string in base64"
	case kind == reflect.Slice, kind == reflect.Array:
		return "an array"
	case kind == reflect.Map, kind == reflect.Struct:
		return "an object"
	}
	return "nothing"
}

// jsonGot names a value.
func jsonGot(item []byte) string {
	switch strings.TrimLeft(string(item[:1]), "-0123456789") {
	case "":
		return "a number"
	case "[":
		return "an array"
	case "{":
		return "an object"
	case "n":
		return "null"
	case `"`:
		return "a string"
	}
	return "a boolean"
}
