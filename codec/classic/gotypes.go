package classic

import "reflect"

// MaxDepth is the maximum nesting of values. The original reaches about 2,000.
const MaxDepth = 1024

// fields returns the schema in a Go struct's tag, and the indexes of the fields that are sent.
func fields(t reflect.Type) (schema string, index []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("classic")
		switch {
		case f.Name == "_" && tagged:
			schema = tag
		case f.IsExported() && tag != "-":
			index = append(index, i)
		}
	}
	return schema, index
}

var (
	structType = reflect.TypeFor[Struct]()
	mapType    = reflect.TypeFor[Map]()
	paramsType = reflect.TypeFor[Params]()
)

// isUUID reports whether values of t are uuids.
func isUUID(t reflect.Type) bool {
	return t.Kind() == reflect.Array && t.Len() == len(UUID{}) && t.Elem().Kind() == reflect.Uint8
}

// appendUnit appends a struct{} that is the whole value of Append: a struct without schema and
// fields. As parameters it means no parameters. As a result it is the null that classic
// asterisque sends for void and Unit.
func appendUnit(dst []byte, f form) []byte {
	return appendFields(appendRaw(append(dst, structTag), f, ""), f, 0)
}

// isUnit reports whether v is a struct{}, or points to one.
func isUnit(v reflect.Value) bool {
	for range MaxDepth { // a type can point to itself
		if v.Kind() != reflect.Pointer && v.Kind() != reflect.Interface {
			break
		}
		v = v.Elem()
	}
	return v.Kind() == reflect.Struct && v.NumField() == 0
}
