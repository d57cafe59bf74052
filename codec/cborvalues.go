package codec

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"sync"

	"github.com/asterisque-go/asterisque/internal/sizing"
	"github.com/fxamacker/cbor/v2"
)

// CBOR is the default codec: RFC 8949, with the struct tags and defaults of the module
// github.com/fxamacker/cbor. It sends a time.Time as a tagged RFC 3339 string in UTC, to the
// nanosecond, and the zero time as null. It rejects maps with duplicate keys, and values that are
// nested more than 32 deep; the package comment lists the other values that its sender rejects. A
// field of a struct is matched only by its exact name; a field that the struct does not have is
// ignored. Values of the types string, []byte, bool, int, int64, uint64 and float64, and pointers
// to them, take a path without reflection. Types that decode themselves have UnmarshalCBOR or
// UnmarshalBinary.
var CBOR Values = newCBORValues()

type cborValues struct {
	enc cbor.UserBufferEncMode
	dec cbor.DecMode

	buffers *sync.Pool // of *bytes.Buffer, without memory: enc takes nothing else
}

// newCBORValues panics if the library rejects the options: they are constant, so the first test
// would find that.
func newCBORValues() cborValues {
	enc, err := cbor.EncOptions{
		// to the nanosecond, and in UTC: RFC 3339 has no seconds in zones
		Time:       cbor.TimeRFC3339NanoUTC,
		TimeTag:    cbor.EncTagRequired,
		NaNConvert: cbor.NaNConvertPreserveSignal,
	}.UserBufferEncMode()
	if err != nil {
		panic("BUG: " + err.Error())
	}
	dec, err := cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		MaxNestedLevels:   32,
		MaxArrayElements:  math.MaxInt32, // the size of a message is the limit
		MaxMapPairs:       math.MaxInt32,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive, // schemas have exact names
	}.DecMode()
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return cborValues{enc, dec, &sync.Pool{New: func() any { return new(bytes.Buffer) }}}
}

func (cborValues) Name() string {
	return "cbor"
}

func (c cborValues) Append(dst []byte, v any) ([]byte, error) {
	if b, ok := appendPlain(dst, v); ok {
		return b, nil
	}
	if _, f := cborSent.Check(v); f != nil {
		return dst, cborFault(f, v)
	}
	buf := c.buffers.Get().(*bytes.Buffer)
	*buf = *bytes.NewBuffer(dst)
	defer func() {
		*buf = bytes.Buffer{}
		c.buffers.Put(buf)
	}()
	if err := c.enc.MarshalToBuffer(v, buf); err != nil {
		return dst, cborEncodeError(err, v)
	}
	return buf.Bytes(), nil
}

func (c cborValues) Decode(data []byte, v any) error {
	if decodePlain(data, v) {
		return nil
	}
	if len(data) > longestNumber && hasLongNumber(data, v) {
		return errLongNumber(v)
	}
	if hasNaNTwice(data, v) {
		return errTwice(nil)
	}
	if err := c.dec.Unmarshal(data, v); err != nil {
		return c.decodeError(err, data, v)
	}
	return nil
}

// Weigh implements Weigher.
func (cborValues) Weigh(data []byte, t reflect.Type, most int) int {
	w := cborWeigher{data: data, Tally: sizing.NewTally(most)}
	w.value(cborPlans.Of(t), 0)
	return w.Bytes()
}

func (c cborValues) decodeError(err error, data []byte, v any) error {
	if malformed := c.dec.Wellformed(data); malformed != nil {
		return &ValueError{Reason: "malformed CBOR: " + strings.TrimPrefix(malformed.Error(), "cbor: "), Err: err}
	}
	var semantic *cbor.SemanticError
	if errors.As(err, &semantic) && strings.Contains(semantic.Error(), "UTF-8") {
		return &ValueError{Reason: "malformed CBOR: a text is not UTF-8", Err: err}
	}
	if e := placeIn(v, func(t reflect.Type) *TypeError { return explainCBOR(data, t, c.dec.Unmarshal) }); e != nil {
		e.Err = err
		return e
	}
	var other *cbor.UnmarshalTypeError
	var twice *cbor.DupMapKeyError
	switch {
	case errors.As(err, &other):
		return &TypeError{Want: "a value of another type", Got: "CBOR " + other.CBORType, Err: err}
	case errors.As(err, &twice):
		return errTwice(err)
	}
	return &ValueError{Reason: "the value, which is well-formed CBOR, does not fit", Err: err}
}

func errTwice(err error) error { return &ValueError{Reason: "a map has a key twice", Err: err} }
