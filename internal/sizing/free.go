package sizing

import (
	"math"
	"reflect"
)

// small is the size of data, in bytes, that is not weighed for a type with values that never need
// much more memory than their data.
const small = 256

// Free returns the size of data, in bytes, that need not be weighed for type t, because a value
// needs not much more memory than that. For numbers, strings and bytes, and arrays of them, any
// size is free. For a struct or a pointer of such types the size is small, since they add their own
// memory, and codecs that check for duplicate fields hold the names of unknown fields for a while.
// For all other types it is 0.
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

// freeWithin is free for a type that t refers to.
func freeWithin(of, t reflect.Type, within []reflect.Type) int {
	for _, w := range within {
		if w == t {
			return 0 // nested as deep as the data
		}
	}
	return free(of, append(within, t))
}
