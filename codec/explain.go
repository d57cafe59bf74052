package codec

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/asterisque-go/asterisque/internal/cut"
	"github.com/asterisque-go/asterisque/internal/weigh"
)

// The libraries behind the codecs say in Go's terms what did not fit. That is of no use to the
// peer, and none of its business. So when a value could not be decoded, an explainer walks through
// it again, in the order of the data, to find the place at which it does not fit. It decodes what
// stands there by itself, so that the library is always right.

// explainer finds the place.
type explainer struct {
	path   []string // from the place to the value, once it is found
	trials int      // how many are left: they cost more than decoding
}

const (
	mostTrials = 1000
	mostName   = 64 // bytes of a name that the peer has chosen
)

// in notes that the place is within a part of this name.
func (x *explainer) in(name string) { x.path = append(x.path, name) }

// found returns e with the path to the place, which may be nil.
func (x *explainer) found(e *TypeError) *TypeError {
	for _, name := range x.path {
		e.Within(name)
	}
	return e
}

// takes reports whether data, decoded by itself, fits into a t, or too much was tried already.
func (x *explainer) takes(data []byte, t reflect.Type, decode func([]byte, any) error) bool {
	if x.trials == 0 {
		return true
	}
	x.trials--
	return decode(data, reflect.New(t).Interface()) == nil
}

// among names a part by its place.
func among(i int) string { return "[" + strconv.Itoa(i) + "]" }

// field names a part by its name, and key a part by its key.
func field(name []byte) string { return "." + string(cut.Text(name, mostName)) }
func key(name []byte) string   { return "[" + strconv.Quote(string(cut.Text(name, mostName))) + "]" }

// keyOf names a key of a map by the place of its entry.
func keyOf(i int) string { return fmt.Sprintf("[key of entry %d]", i) }

// mismatch returns the error for got where want was expected. If these are the same, got is one
// that does not fit.
func mismatch(want, got string) *TypeError {
	if want == got {
		got = "one that does not fit"
	}
	return &TypeError{Want: want, Got: got}
}

// whole returns what an integer of type t is called, if it is one, for numbers that do not fit.
func whole(t reflect.Type) (name string, ok bool) {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("an integer of %d bits", t.Bits()), true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return fmt.Sprintf("an integer of %d bits from 0 on", t.Bits()), true
	}
	return "", false
}

// isBytes reports whether t is a list of bytes.
func isBytes(t reflect.Type) bool {
	return (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && t.Elem().Kind() == reflect.Uint8
}

// skipped is the plan of an ignored item.
var skipped = weigh.NothingPlan

// pointedTo returns the plan of what p points to, however often.
func pointedTo(p *weigh.Plan) *weigh.Plan {
	for range 100 { // a type can point to itself
		if p.Kind != weigh.Pointer {
			break
		}
		p = p.Elem
	}
	return p
}

// placeIn returns what explain finds of the type that v points to, if it points to any.
func placeIn(v any, explain func(reflect.Type) *TypeError) *TypeError {
	to := reflect.ValueOf(v)
	if to.Kind() != reflect.Pointer || to.IsNil() {
		return nil
	}
	return explain(to.Type().Elem())
}
