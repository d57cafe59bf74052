package classic

import (
	"encoding/hex"
	"fmt"
)

// UUID is a uuid: 16 bytes, the most significant first. Every other Go type that is a [16]byte is
// equivalent.
type UUID [16]byte

// String returns the usual form: 01234567-89ab-cdef-fedc-ba9876543210.
func (u UUID) String() string {
	s := hex.EncodeToString(u[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// ParseUUID parses the form that String returns, with letters of either case.
func ParseUUID(s string) (u UUID, err error) {
	if len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' {
		if n, err := hex.Decode(u[:], []byte(s[:8]+s[9:13]+s[14:18]+s[19:23]+s[24:])); err == nil && n == len(u) {
			return u, nil
		}
	}
	return UUID{}, fmt.Errorf("classic: %q is not a uuid; one is, for example, 01234567-89ab-cdef-fedc-ba9876543210", s)
}

// Struct is a struct of any schema.
type Struct struct {
	Schema string
	Fields []any // at most MaxFields
}

// Map is a map of any types, in the order of its encoding. A decoded Map has each key once: of
// several entries with equal keys, the last one counts.
type Map []Entry

// Entry is a key of a Map with its value.
type Entry struct{ Key, Value any }

// Params are the parameters of a call, for functions that take any number of them. In any other
// place they are a list.
type Params []any
