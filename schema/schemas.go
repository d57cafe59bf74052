package schema

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/asterisque-go/asterisque"
)

// Schemas makes schemas of Go types. It does not change, and is safe for concurrent use.
type Schemas struct {
	own map[reflect.Type]string // of types with a form of their own
}

var _ asterisque.Schemas = (*Schemas)(nil)

// New returns what makes schemas.
func New(opts ...Option) *Schemas {
	s := &Schemas{own: make(map[reflect.Type]string)}
	for _, o := range opts {
		o(s)
	}
	return s
}

// Option sets one property of [Schemas].
type Option func(*Schemas)

// As says what the schema of a T is, wherever one is, for a type that has a form of its own: it
// encodes and decodes itself (MarshalCBOR, UnmarshalCBOR, MarshalBinary, UnmarshalBinary). schema
// is a JSON object, and has to hold for what the methods of T take and return.
func As[T any](schema string) Option {
	return func(s *Schemas) { s.own[reflect.TypeFor[T]()] = schema }
}

// Input returns the schema of what is decoded as a t: it allows all that the codec takes, and
// nothing else. An error is an [*Error].
func (s *Schemas) Input(t reflect.Type) (asterisque.Schema, error) { return s.make(t, false) }

// Output returns the schema of what is encoded of a t: it allows all that the codec makes of one.
// An error is an [*Error].
func (s *Schemas) Output(t reflect.Type) (asterisque.Schema, error) { return s.make(t, true) }

// draft is what the schemas keep to.
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
