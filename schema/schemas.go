package schema

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/asterisque-go/asterisque"
)

// Schemas makes schemas of Go types. It is immutable and safe for concurrent use.
type Schemas struct {
	own map[reflect.Type]string // schemas of types that encode themselves
}

var _ asterisque.Schemas = (*Schemas)(nil)

// New returns Schemas with the given options.
func New(opts ...Option) *Schemas {
	s := &Schemas{own: make(map[reflect.Type]string)}
	for _, o := range opts {
		o(s)
	}
	return s
}

// Option sets one property of [Schemas].
type Option func(*Schemas)

// As sets the schema of T, for a type that encodes and decodes itself (MarshalCBOR, UnmarshalCBOR,
// MarshalBinary, UnmarshalBinary). schema is a JSON object. It has to be valid for the values that
// the methods of T accept and return.
func As[T any](schema string) Option {
	return func(s *Schemas) { s.own[reflect.TypeFor[T]()] = schema }
}

// Input returns the schema of values that are decoded as a t: it allows exactly the values that the
// codec accepts. An error is an [*Error].
func (s *Schemas) Input(t reflect.Type) (asterisque.Schema, error) { return s.make(t, false) }

// Output returns the schema of encoded values of type t: it allows every value that the codec
// makes. An error is an [*Error].
func (s *Schemas) Output(t reflect.Type) (asterisque.Schema, error) { return s.make(t, true) }

// draft is the JSON Schema version of the schemas.
const draft = "https://json-schema.org/draft/2020-12/schema"

func (s *Schemas) make(t reflect.Type, output bool) (asterisque.Schema, error) {
	m := newMaker(s.own, t, output)
	root, err := m.root()
	if err != nil {
		return "", err
	}
	root.Version = draft
	text, err := json.Marshal(root)
	if err != nil {
		return "", fmt.Errorf("schema: %v: %w", t, err)
	}
	return asterisque.Schema(text), nil
}
