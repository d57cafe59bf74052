package codec

import (
	"encoding"
	"errors"
	"math/big"
	"reflect"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/asterisque-go/asterisque/internal/encodable"
	"github.com/asterisque-go/asterisque/internal/sizing"
)

// cborSent finds values that CBOR does not carry, with or without an error at the peer.
var cborSent = &encodable.Rules{
	Plans:   &sizing.Plans{Rules: sizing.Rules{Kind: cborSentKind, Field: cborField}},
	Depth:   cborDepth,
	Special: cborSpecial,
}

func init() { // it refers to itself
	cborSent.Encode = func(v any) ([]byte, error) { return CBOR.(cborValues).enc.Marshal(v) }
}

func cborSentKind(t reflect.Type) (k sizing.Kind, ok bool) {
	switch t {
	case reflect.TypeFor[time.Time]():
		return sizing.Time, true
	case reflect.TypeFor[big.Int]():
		return sizing.Number, true
	case reflect.TypeFor[cbor.ByteString]():
		return sizing.Nothing, true
	}
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return 0, false
	}
	p := reflect.PointerTo(t)
	own := p.Implements(reflect.TypeFor[cbor.Marshaler]()) || p.Implements(reflect.TypeFor[encoding.BinaryMarshaler]())
	return sizing.Own, own
}

// cborSpecial counts the tag of a time or a large integer as a level.
func cborSpecial(p *sizing.Plan, v reflect.Value) (levels int, f *encodable.Fault) {
	switch p.Kind {
	case sizing.Time:
		return 1, nil
	case sizing.Number:
		if bigOf(v).BitLen() > 64 {
			return 1, nil
		}
	}
	return 0, nil
}

// bigOf returns the big.Int in v.
func bigOf(v reflect.Value) *big.Int {
	if v.CanAddr() {
		return v.Addr().Interface().(*big.Int)
	}
	n := v.Interface().(big.Int)
	return &n
}

// cborFault returns f, a fault of v, as an error of Append.
func cborFault(f *encodable.Fault, v any) error {
	return sendError(f, v, "a value that CBOR can hold", "CBOR")
}

// cborEncodeError returns err, an error of the library for v, as an error of Append.
func cborEncodeError(err error, v any) error {
	var unsupported *cbor.UnsupportedTypeError
	return cborFault(explained(cborSent, err, v, errors.As(err, &unsupported)), v)
}
