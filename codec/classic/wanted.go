package classic

import (
	"fmt"
	"reflect"
)

// wanted names the classic type that is stored in a t.
func wanted(t reflect.Type) string {
	switch {
	case isUUID(t):
		return "a uuid"
	case t == mapType:
		return "a map"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("an integer of %d bits", t.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return fmt.Sprintf("an integer of %d bits from 0 on", t.Bits())
	case reflect.Float32, reflect.Float64:
		return fmt.Sprintf("a float of %d bits", t.Bits())
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return listOf(t)
	case reflect.Map:
		return "a map"
	case reflect.Struct:
		return "a struct"
	}
	return "nothing"
}

// listOf names the classic type that is stored in a slice or an array.
func listOf(t reflect.Type) string {
	name, unit := "a list", "values"
	if t.Elem().Kind() == reflect.Uint8 {
		name, unit = "a binary", "bytes"
	}
	if t.Kind() == reflect.Array {
		name += fmt.Sprintf(" of %d %s", t.Len(), unit)
	}
	return name
}
