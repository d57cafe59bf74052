// Package encodable finds values that a codec cannot carry exactly, before they are encoded: texts
// that are not UTF-8, values that are nested too deeply or without end, and distinct keys that are
// equal for the receiver. It reports the place within the value.
package encodable

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/asterisque-go/asterisque/internal/truncate"
)

// Fault describes why and where a value cannot be carried.
type Fault struct {
	Path        string // from the value to the place; empty: the whole value
	Reason      string // in the terms of the codec
	Unsupported bool   // the codec has no form for values of the type
	Err         error  // in Go's terms, or nil
}

// Text returns the path and the reason.
func (f *Fault) Text() string {
	if f.Path == "" {
		return f.Reason
	}
	return "at " + f.Path + ": " + f.Reason
}

// Error returns the Text.
func (f *Fault) Error() string { return f.Text() }

// Within adds the name of the enclosing part, such as ".window" or "[3]", to the path of f.
func (f *Fault) Within(name string) *Fault {
	f.Path = truncate.Path(name, f.Path)
	return f
}

// NotUTF8 is the fault of a text that is not UTF-8.
func NotUTF8() *Fault { return &Fault{Reason: "a text is not UTF-8"} }

// TooDeep is the fault of values nested more than most deep.
func TooDeep(most int) *Fault {
	return &Fault{Reason: "values are nested more than " + strconv.Itoa(most) + " deep, perhaps without end"}
}

// Opaque is the fault of a value of type t, which has no exported field.
func Opaque(t reflect.Type) *Fault {
	return &Fault{Unsupported: true, Reason: "the value hides what it holds", Err: fmt.Errorf("%v has no exported field", t)}
}

const mostName = 64 // bytes of a key in a path

func among(i int) string { return "[" + strconv.Itoa(i) + "]" }

func named(key string) string {
	return "[" + strconv.Quote(string(truncate.Text([]byte(key), mostName))) + "]"
}

// KeyName names the value of a map by its key.
func KeyName(key reflect.Value) string {
	for key.Kind() == reflect.Interface && !key.IsNil() {
		key = key.Elem()
	}
	switch {
	case key.Kind() == reflect.String:
		return named(key.String())
	case key.CanInt():
		return "[" + strconv.FormatInt(key.Int(), 10) + "]"
	case key.CanUint():
		return "[" + strconv.FormatUint(key.Uint(), 10) + "]"
	case key.CanFloat():
		return "[" + strconv.FormatFloat(key.Float(), 'g', -1, 64) + "]"
	}
	return "[of an entry]"
}
