package codec

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/asterisque-go/asterisque/internal/sizing"
	"github.com/asterisque-go/asterisque/internal/truncate"
)

// The libraries behind the codecs describe a mismatch in Go's terms, which are of no use to the
// peer, and internal. So when a value could not be decoded, an explainer walks through it again, in
// the order of the data, to find the place of the mismatch. It decodes the candidates separately,
// so that the library decides.

// explainer finds the place of a mismatch.
type explainer struct {
	path   []string // from the place up to the value, once it is found
	trials int      // remaining attempts: each costs more than decoding
}

const (
	mostTrials = 1000
	mostName   = 64 // bytes of a name that the peer can choose
)

// in adds a part of this name to the path.
func (x *explainer) in(name string) { x.path = append(x.path, name) }

// found returns e with the path to the place, which may be nil.
func (x *explainer) found(e *TypeError) *TypeError {
	for _, name := range x.path {
		e.Within(name)
	}
	return e
}

// takes reports whether data, decoded separately, matches a t, or there were too many attempts
// already.
func (x *explainer) takes(data []byte, t reflect.Type, decode func([]byte, any) error) bool {
	if x.trials == 0 {
		return true
	}
	x.trials--
	return decode(data, reflect.New(t).Interface()) == nil
}

// among names a part by its index.
func among(i int) string { return "[" + strconv.Itoa(i) + "]" }

// field names a part by its name, and key a part by its key.
func field(name []byte) string { return "." + string(truncate.Text(name, mostName)) }
func key(name []byte) string   { return "[" + strconv.Quote(string(truncate.Text(name, mostName))) + "]" }

// keyOf names a key of a map by the index of its entry.
func keyOf(i int) string { return fmt.Sprintf("[key of entry %d]", i) }

// mismatch returns the error for got in place of want. If these are equal, got is a value out of
// range.
func mismatch(want, got string) *TypeError {
	if want == got {
		got = "one that does not fit"
	}
	return &TypeError{Want: want, Got: got}
}

// whole returns the name of integer type t for numbers out of range, if it is one.
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
var skipped = sizing.NothingPlan

// pointedTo returns the plan of the value behind p, at any number of pointers.
func pointedTo(p *sizing.Plan) *sizing.Plan {
	for range 100 { // a type can point to itself
		if p.Kind != sizing.Pointer {
			break
		}
		p = p.Elem
	}
	return p
}

// placeIn returns the result of explain for the type that v points to, if any.
func placeIn(v any, explain func(reflect.Type) *TypeError) *TypeError {
	to := reflect.ValueOf(v)
	if to.Kind() != reflect.Pointer || to.IsNil() {
		return nil
	}
	return explain(to.Type().Elem())
}
