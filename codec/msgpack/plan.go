package msgpack

import (
	"encoding"
	"math/big"
	"reflect"
	"sync"
	"time"

	"github.com/tinylib/msgp/msgp"
)

// typeForm is the form of a type in MessagePack.
type typeForm uint8

const (
	asNothing typeForm = iota // it has none
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
	asBinary // it encodes itself as a binary string
)

// plan has the encoding and decoding of one type. It refers to itself if its type does, and does
// not change after its creation.
type plan struct {
	t         reflect.Type
	form      typeForm // when it is read
	out       typeForm // when it is written
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

	planning sync.Mutex // guards the creation of plans; one may need others
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

// special returns the form of a type with a special encoding.
func special(t, own, binary reflect.Type) (typeForm, bool) {
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

// ofKind has the forms of kinds.
var ofKind = [...]typeForm{
	reflect.Bool: asBool, reflect.Int: asInteger, reflect.Int8: asInteger, reflect.Int16: asInteger, reflect.Int32: asInteger,
	reflect.Int64: asInteger, reflect.Uint: asUnsigned, reflect.Uint8: asUnsigned, reflect.Uint16: asUnsigned,
	reflect.Uint32: asUnsigned, reflect.Uint64: asUnsigned, reflect.Uintptr: asUnsigned, reflect.Float32: asFloat,
	reflect.Float64: asFloat, reflect.String: asText, reflect.Slice: asSlice, reflect.Array: asArray, reflect.Map: asMap,
	reflect.Struct: asStruct, reflect.Pointer: asPointer, reflect.Interface: asInterface, reflect.UnsafePointer: asNothing,
}

// formOf returns the form of a type by its kind.
func formOf(t reflect.Type) typeForm {
	f := ofKind[t.Kind()]
	if (f == asSlice || f == asArray) && t.Elem().Kind() == reflect.Uint8 {
		return map[typeForm]typeForm{asSlice: asBytes, asArray: asByteArray}[f]
	}
	return f
}

// wants names the expected item of each form.
var wants = [...]string{
	asNothing: "nothing", asBool: names[isBool], asInteger: names[isInteger], asUnsigned: names[isInteger], asFloat: names[isFloat],
	asText: names[isText], asBytes: names[isBytes], asByteArray: names[isBytes], asSlice: names[isArray], asArray: names[isArray],
	asMap: names[isMap], asStruct: names[isMap], asPointer: "nothing", asInterface: "nothing", asTime: "a timestamp",
	asBig: names[isInteger], asExt: names[isExt], asOwn: "a value in a form of its own", asBinary: names[isBytes],
}

// want names the item expected for p.
func (p *plan) want() string { return wants[p.form] }
