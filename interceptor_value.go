package asterisque

import (
	"fmt"
	"reflect"

	"github.com/asterisque-go/asterisque/internal/values"
)

// callValue is the parameters or the result of a call: as bytes, as a value, or as both.
type callValue struct {
	place valuePlace // nil if the function is untyped
	raw   []byte
	// forms that are present
	hasRaw, hasValue bool
	sets             uint // number of changes
}

// valuePlace holds a value.
type valuePlace interface {
	// at returns a pointer to the value.
	at() any

	// get returns the value.
	get() any

	// set sets the value. It returns false if v is of another type.
	set(v any) bool

	// decode decodes raw into the value. If keep is true, raw has no other user.
	decode(x *values.Coder, raw []byte, keep bool) error

	// of returns the type of the value.
	of() reflect.Type

	// another returns another place of the same type.
	another() valuePlace
}

// typedPlace is the place of a T.
type typedPlace[T any] struct {
	v    T
	free int // bytes of encoded ones that need no estimate
}

func (s *typedPlace[T]) at() any { return &s.v }

func (s *typedPlace[T]) get() any { return s.v }

func (s *typedPlace[T]) set(v any) bool {
	t, ok := v.(T)
	if ok = ok || v == nil && s.of().Kind() == reflect.Interface; ok {
		s.v = t
	}
	return ok
}

func (s *typedPlace[T]) decode(x *values.Coder, raw []byte, keep bool) error {
	var none T
	s.v = none
	return x.DecodeWithin(raw, &s.v, s.free, reflect.TypeFor[T](), keep)
}

func (s *typedPlace[T]) of() reflect.Type { return reflect.TypeFor[T]() }

func (s *typedPlace[T]) another() valuePlace { return &typedPlace[T]{free: s.free} }

// setRaw replaces the content by raw.
func (c *callValue) setRaw(raw []byte) {
	c.raw, c.hasRaw, c.hasValue = raw, true, false
}

// renew is called before a change of c. Another copy of c keeps the old place with its value.
func (c *callValue) renew() {
	if c.hasValue {
		c.place = c.place.another()
	}
	c.sets++
}

// set replaces the content by the value v.
func (c *callValue) set(v any) error {
	if c.place == nil {
		return fmt.Errorf("it is untyped: set the bytes")
	}
	if !c.place.set(v) {
		return fmt.Errorf("it is a %v, and not a %T", c.place.of(), v)
	}
	c.raw, c.hasRaw, c.hasValue = nil, false, true
	return nil
}

// decoded makes the value from the bytes, if necessary. If keep is true, the value may keep the
// bytes.
func (c *callValue) decoded(x *values.Coder, keep bool) error {
	if c.hasValue || c.place == nil || !c.hasRaw {
		return nil
	}
	err := c.place.decode(x, c.raw, keep)
	c.hasValue = err == nil
	return err
}

// encoded makes the bytes from the value, if necessary.
func (c *callValue) encoded(x *values.Coder) error {
	if c.hasRaw || !c.hasValue {
		return nil
	}
	raw, _, err := x.Encode(nil, c.place.at(), false)
	if err == nil {
		c.raw, c.hasRaw = raw, true
	}
	return err
}
