// Package encodable finds values that a codec cannot carry exactly, before they are encoded: texts
// that are no UTF-8, values that are nested too deeply or without end, and keys that are one to the
// receiver. It names the place in the value.
package encodable

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/asterisque-go/asterisque/internal/cut"
)

// Fault says what a codec cannot carry, and where.
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

// Within notes that the place of f is within a part of this name, such as ".window" or "[3]".
func (f *Fault) Within(name string) *Fault {
	f.Path = cut.Path(name, f.Path)
	return f
}

// NotUTF8 is the fault of a text.
func NotUTF8() *Fault { return &Fault{Reason: "a text is not UTF-8"} }

// TooDeep is the fault of values in more than so many others.
func TooDeep(most int) *Fault {
	return &Fault{Reason: "values are nested more than " + strconv.Itoa(most) + " deep, perhaps without end"}
}

// Opaque is the fault of a value of type t, which hides what it holds.
func Opaque(t reflect.Type) *Fault {
	return &Fault{Unsupported: true, Reason: "the value hides what it holds", Err: fmt.Errorf("%v has no exported field", t)}
}

const mostName = 64 // bytes of a key in a path

func among(i int) string { return "[" + strconv.Itoa(i) + "]" }

func named(key string) string {
	return "[" + strconv.Quote(string(cut.Text([]byte(key), mostName))) + "]"
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
