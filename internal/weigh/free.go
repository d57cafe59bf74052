package weigh

import (
	"math"
	"reflect"
)

// small is how many bytes of data are not weighed for a type whose values hold not much more than
// the data, whatever that is.
const small = 256

// Free returns how many bytes of data a value of type t may have without being worth weighing: it
// holds not much more than those. For numbers, strings and bytes, and arrays of them, that is any
// number. A struct or a pointer of such adds what it is itself; but codecs that look for fields
// which come twice hold the names of unknown ones for a while. For everything else it is 0.
func Free(t reflect.Type) int { return free(t, nil) }

func free(t reflect.Type, within []reflect.Type) int {
	switch t.Kind() {
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return math.MaxInt
		}
		return 0
	case reflect.Map, reflect.Interface:
		return 0
	case reflect.Array:
		return free(t.Elem(), within)
	case reflect.Pointer:
		return min(small, freeWithin(t.Elem(), t, within))
	case reflect.Struct:
		n := math.MaxInt
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() || f.Anonymous {
				n = min(n, small, freeWithin(f.Type, t, within))
			}
		}
		return n
	}
	return math.MaxInt
}

// freeWithin is free of a type that t refers to.
func freeWithin(of, t reflect.Type, within []reflect.Type) int {
	for _, w := range within {
		if w == t {
			return 0 // as deep as the data wants
		}
	}
	return free(of, append(within, t))
}
