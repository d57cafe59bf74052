package asterisque

import (
	"fmt"
	"reflect"
)

// callValue is what a call carries one way, its parameters or its result: as bytes, as the value
// that they stand for, or as both.
type callValue struct {
	place place // nil if the function is untyped
	raw   []byte
	// which of the two there are
	hasRaw, hasValue bool
	sets             uint // how often it was changed
}

// place is where a value is.
type place interface {
	// at returns a pointer to the value.
	at() any

	// get returns the value.
	get() any

	// set sets it, and reports false if v is of another type.
	set(v any) bool

	// decode decodes raw into it. If keep is true, nobody else will use raw.
	decode(x *values, raw []byte, keep bool) error

	// of returns the type of the value.
	of() reflect.Type

	// another returns another place for such values.
	another() place
}

// placeOf is the place of a T.
type placeOf[T any] struct {
	v    T
	free int // bytes of encoded ones that need not be weighed
}

func (s *placeOf[T]) at() any { return &s.v }

func (s *placeOf[T]) get() any { return s.v }

func (s *placeOf[T]) set(v any) bool {
	t, ok := v.(T)
	if ok = ok || v == nil && s.of().Kind() == reflect.Interface; ok {
		s.v = t
	}
	return ok
}

func (s *placeOf[T]) decode(x *values, raw []byte, keep bool) error {
	var none T
	s.v = none
	return x.decodeWithin(raw, &s.v, s.free, reflect.TypeFor[T](), keep)
}

func (s *placeOf[T]) of() reflect.Type { return reflect.TypeFor[T]() }

func (s *placeOf[T]) another() place { return &placeOf[T]{free: s.free} }

// setRaw replaces what is carried by raw.
func (c *callValue) setRaw(raw []byte) {
	c.raw, c.hasRaw, c.hasValue = raw, true, false
}

// renew is called before c is changed, of which somebody has a copy: the value stays where it is
// for that.
func (c *callValue) renew() {
	if c.hasValue {
		c.place = c.place.another()
	}
	c.sets++
}

// set replaces what is carried by v.
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

// decoded sees to it that there is the value. If keep is true, it may keep what it is decoded from.
func (c *callValue) decoded(x *values, keep bool) error {
	if c.hasValue || c.place == nil || !c.hasRaw {
		return nil
	}
	err := c.place.decode(x, c.raw, keep)
	c.hasValue = err == nil
	return err
}

// encoded sees to it that there are the bytes.
func (c *callValue) encoded(x *values) error {
	if c.hasRaw || !c.hasValue {
		return nil
	}
	raw, _, err := x.encode(nil, c.place.at(), false)
	if err == nil {
		c.raw, c.hasRaw = raw, true
	}
	return err
}
