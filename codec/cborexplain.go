package codec

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/asterisque-go/asterisque/internal/cborhead"
	"github.com/asterisque-go/asterisque/internal/sizing"
)

// cborExplainer walks the items of data, which is well-formed.
type cborExplainer struct {
	explainer
	cborWeigher
	decode func([]byte, any) error
}

// explainCBOR returns the first mismatch of data with a t, or nil if it is not found. decode
// decodes an item.
func explainCBOR(data []byte, t reflect.Type, decode func([]byte, any) error) *TypeError {
	x := cborExplainer{
		explainer{trials: mostTrials}, cborWeigher{data: data, Tally: sizing.NewTally(math.MaxInt)}, decode,
	}
	return x.found(x.value(cborPlans.Of(t), 0))
}

// value returns the mismatch of the next item with p, or nil, and skips the item.
func (x *cborExplainer) value(p *sizing.Plan, depth int) *TypeError {
	from := x.at
	nothing := p.Kind == sizing.Pointer && x.left() > 0 && (x.data[from] == cborhead.Null || x.data[from] == undefined)
	if p = pointedTo(p); nothing || p.Kind == sizing.Any || p == skipped {
		x.cborWeigher.value(skipped, depth)
		return nil
	}
	x.tags()
	if x.left() == 0 {
		return nil
	}
	list := x.data[x.at]&^31 == cborhead.Array
	switch major := x.data[x.at] &^ 31; {
	case list && (p.Kind == sizing.Slice || p.Kind == sizing.Array || p.Kind == sizing.Struct && isList(p.Type)):
		return x.array(p, depth+1)
	case major == cborhead.Map && p.Kind == sizing.Map:
		return x.entries(p, depth+1)
	case major == cborhead.Map && p.Kind == sizing.Struct && !isList(p.Type):
		return x.fields(p, depth+1)
	}
	x.at = from
	x.cborWeigher.value(skipped, depth)
	if x.takes(x.data[from:x.at], p.Type, x.decode) {
		return nil
	}
	return cborMismatch(p, x.data[from:x.at])
}

func (x *cborExplainer) array(p *sizing.Plan, depth int) *TypeError {
	_, n, endless := x.head()
	i := 0
	for ; x.more(i, n, endless); i++ {
		elem := skipped
		switch {
		case p.Kind == sizing.Struct && i < len(p.Order):
			elem = p.Order[i]
		case p.Kind == sizing.Slice, p.Kind == sizing.Array && i < p.Len:
			elem = p.Elem
		}
		if e := x.value(elem, depth); e != nil {
			x.in(among(i))
			return e
		}
	}
	if p.Kind == sizing.Struct && i != len(p.Order) {
		return &TypeError{Want: fmt.Sprintf("an array of %d", len(p.Order)), Got: fmt.Sprintf("one of %d", i)}
	}
	return nil
}

func (x *cborExplainer) entries(p *sizing.Plan, depth int) *TypeError {
	_, n, endless := x.head()
	for i := 0; x.more(i, n, endless); i++ {
		name := x.nextKey(i)
		if e := x.value(p.Key, depth); e != nil {
			x.in(keyOf(i))
			return e
		}
		if e := x.value(p.Elem, depth); e != nil {
			x.in(name())
			return e
		}
	}
	return nil
}

// nextKey returns a function that names the next key.
func (x *cborExplainer) nextKey(i int) func() string {
	r := x.cborWeigher // a copy, so that nothing is skipped
	return func() string {
		switch major := r.data[r.at] &^ 31; major {
		case cborhead.Text:
			return key(r.key())
		case cborhead.Unsigned, cborhead.Negative:
			return "[" + cborNumber(r.data[r.at:]) + "]"
		}
		return "[of entry " + strconv.Itoa(i) + "]"
	}
}

func (x *cborExplainer) fields(p *sizing.Plan, depth int) *TypeError {
	_, n, endless := x.head()
	for i := 0; x.more(i, n, endless); i++ {
		r := x.cborWeigher
		f := x.field(p, depth)
		if f == nil {
			f = skipped
		}
		if e := x.value(f, depth); e != nil {
			if r.data[r.at]&^31 == cborhead.Text {
				x.in(field(r.key()))
			} else {
				x.in("." + cborNumber(r.data[r.at:]))
			}
			return e
		}
	}
	return nil
}

// isList reports whether a struct of type t is encoded as an array.
func isList(t reflect.Type) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("cbor")
		if tag == "" {
			tag = f.Tag.Get("json")
		}
		if f.Name == "_" && strings.Contains(tag, "toarray") {
			return true
		}
	}
	return false
}

// cborMismatch returns the error for an item that does not match p.
func cborMismatch(p *sizing.Plan, data []byte) *TypeError {
	want, got := cborWant(p), cborGot(data)
	if name, ok := whole(p.Type); ok && got == "an integer" {
		return &TypeError{Want: name, Got: cborNumber(data)}
	}
	return mismatch(want, got)
}

// cborWant names the item expected for p.
func cborWant(p *sizing.Plan) string {
	t := p.Type
	if _, ok := whole(t); ok && p.Kind != sizing.Own {
		return "an integer"
	}
	switch {
	case p.Kind == sizing.Time:
		return "tag 0 or 1 (date)"
	case p.Kind == sizing.Number:
		return "an integer"
	case p.Kind == sizing.Own:
		return "a value in a form of its own"
	case t == reflect.TypeFor[cbor.ByteString](), isBytes(t):
		return "a byte string"
	case t.Kind() == reflect.Bool:
		return "a bool"
	case t.Kind() == reflect.Float32, t.Kind() == reflect.Float64:
		return "a float"
	case t.Kind() == reflect.String:
		return "a text string"
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Array, t.Kind() == reflect.Struct && isList(t):
		return "an array"
	case t.Kind() == reflect.Map, t.Kind() == reflect.Struct:
		return "a map"
	}
	return "nothing"
}

// cborGot names an item.
func cborGot(data []byte) string {
	w := cborWeigher{data: data}
	major, n, _ := w.head()
	switch major {
	case cborhead.Unsigned, cborhead.Negative:
		return "an integer"
	case cborhead.Bytes:
		return "a byte string"
	case cborhead.Text:
		return "a text string"
	case cborhead.Array:
		return "an array"
	case cborhead.Map:
		return "a map"
	case cborhead.Tag:
		return fmt.Sprintf("tag %d", n)
	}
	switch data[0] {
	case cborhead.True, cborhead.False:
		return "a bool"
	case cborhead.Null, undefined:
		return "null"
	case cborhead.Other | 25, cborhead.Other | 26, cborhead.Other | 27:
		return "a float"
	}
	return "a simple value"
}

// cborNumber returns the digits of the integer that data begins with.
func cborNumber(data []byte) string {
	w := cborWeigher{data: data}
	major, n, _ := w.head()
	if major != cborhead.Negative {
		return strconv.FormatUint(n, 10)
	}
	if n == math.MaxUint64 {
		return "-18446744073709551616"
	}
	return "-" + strconv.FormatUint(n+1, 10)
}
