package schema

import (
	"fmt"
	"reflect"
)

// Error reports that a type has no schema, the part that is the reason, and a way out.
type Error struct {
	Type reflect.Type // the requested type
	// The path to the part that is the reason, in Go's terms: ".Window.Done", ".List[]" for
	// elements, ".Table[key]" for keys. Empty: the reason is Type itself.
	Path   string
	Part   reflect.Type // the type of the part
	Reason string
	WayOut string
}

// Error implements error.
func (e *Error) Error() string {
	part := fmt.Sprintf("%s, of type %v,", e.Path, e.Part)
	if e.Path == "" {
		part = "it"
	}
	return fmt.Sprintf("schema: %v has no schema: %s %s: %s", e.Type, part, e.Reason, e.WayOut)
}
