package msgpack

import (
	"encoding"
	"math/big"
	"reflect"
	"sync"
	"time"

	"github.com/tinylib/msgp/msgp"
)

// form is what a type is in MessagePack.
type form uint8

const (
	asNothing form = iota // it has none
	asBool
	asInteger
	asUnsigned
	asFloat
	asText
	asBytes     // a slice of bytes
	asByteArray // of fixed length
	asSlice
	asArray
	asMap
	asStruct
	asPointer
	asInterface
	asTime
	asBig
	asExt
	asOwn    // it has the methods of msgp
	asBinary // it makes a binary string of itself
)

// plan is how values of one type are read and written. It refers to itself where its type does, and
// does not change once it is made.
type plan struct {
	t         reflect.Type
	form      form // when it is read
	out       form // when it is written
	elem, key *plan
	fields    []structField
	byName    map[string]int // of fields
	always    bool           // all fields are written
}

var (
	typeTime     = reflect.TypeFor[time.Time]()
	typeBig      = reflect.TypeFor[big.Int]()
	typeExt      = reflect.TypeFor[Ext]()
	ownReader    = reflect.TypeFor[msgp.Unmarshaler]()
	ownWriter    = reflect.TypeFor[msgp.Marshaler]()
	binaryReader = reflect.TypeFor[encoding.BinaryUnmarshaler]()
	binaryWriter = reflect.TypeFor[encoding.BinaryMarshaler]()
)

var (
	plans sync.Map // of *plan, by reflect.Type

	planning sync.Mutex // guards the making of plans, of which one may need others
)

// planOf returns the plan of t.
func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	planning.Lock()
	defer planning.Unlock()
	b := builder{}
	p := b.plan(t)
	for t, p := range b { // now they are whole
		plans.Store(t, p)
	}
	return p
}

// builder holds plans that refer to each other.
type builder map[reflect.Type]*plan

func (b builder) plan(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	if p := b[t]; p != nil {
		return p
	}
	p := &plan{t: t}
	b[t] = p
	p.form = formOf(t)
	p.out = p.form
	if f, ok := special(t, ownReader, binaryReader); ok {
		p.form = f
	}
	if f, ok := special(t, ownWriter, binaryWriter); ok {
		p.out = f
	}
	switch t.Kind() {
	case reflect.Map:
		p.key = b.plan(t.Key())
		fallthrough
	case reflect.Slice, reflect.Array, reflect.Pointer:
		p.elem = b.plan(t.Elem())
	case reflect.Struct:
		if p.form == asStruct || p.out == asStruct {
			b.structure(p)
		}
	}
	return p
}

// special returns what a type is that is not what it looks like.
func special(t, own, binary reflect.Type) (form, bool) {
	switch t {
	case typeTime:
		return asTime, true
	case typeBig:
		return asBig, true
	case typeExt:
		return asExt, true
	}
	if k := t.Kind(); k == reflect.Pointer || k == reflect.Interface {
		return 0, false
	}
	switch p := reflect.PointerTo(t); {
	case p.Implements(own):
		return asOwn, true
	case p.Implements(binary):
		return asBinary, true
	}
	return 0, false
}

// formOf returns what a type is by its kind.
func formOf(t reflect.Type) form {
	switch t.Kind() {
	case reflect.Bool:
		return asBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return asInteger
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return asUnsigned
	case reflect.Float32, reflect.Float64:
		return asFloat
	case reflect.String:
		return asText
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return asBytes
		}
		return asSlice
	case reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return asByteArray
		}
		return asArray
	case reflect.Map:
		return asMap
	case reflect.Struct:
		return asStruct
	case reflect.Pointer:
		return asPointer
	case reflect.Interface:
		return asInterface
	}
	return asNothing
}

// want names what is expected for p.
func (p *plan) want() string {
	switch p.form {
	case asBool:
		return names[isBool]
	case asInteger, asUnsigned, asBig:
		return names[isInteger]
	case asFloat:
		return names[isFloat]
	case asText:
		return names[isText]
	case asBytes, asByteArray, asBinary:
		return names[isBytes]
	case asSlice, asArray:
		return names[isArray]
	case asMap, asStruct:
		return names[isMap]
	case asTime:
		return "a timestamp"
	case asExt:
		return names[isExt]
	case asOwn:
		return "a value in a form of its own"
	}
	return "nothing"
}
