package schema

import (
	"fmt"
	"reflect"
)

// Error says that a type has no schema, because of which part, and what to do about it.
type Error struct {
	Type reflect.Type // that was asked for
	// to the part that is the reason, in Go's words: ".Window.Done", ".List[]" for elements,
	// ".Table[key]" for keys; empty: it is Type itself
	Path   string
	Part   reflect.Type // the type of the part
	Reason string
	WayOut string
}

// Error says all of it.
func (e *Error) Error() string {
	part := fmt.Sprintf("%s, of type %v,", e.Path, e.Part)
	if e.Path == "" {
		part = "it"
	}
	return fmt.Sprintf("schema: %v has no schema: %s %s: %s", e.Type, part, e.Reason, e.WayOut)
}
