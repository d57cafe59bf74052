package codec

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/fxamacker/cbor/v2"
)

// CBOR is the default codec: RFC 8949, with the struct tags and defaults of github.com/fxamacker/cbor. A time.Time is sent
// as a tagged RFC 3339 string to the nanosecond. Maps with a key twice are refused, and so are values nested deeper than
// 32. Values of the types string, []byte, bool, int, int64, uint64 and float64, and pointers to them, take a path without
// reflection.
var CBOR Values = newCBORValues()

type cborValues struct {
	enc cbor.UserBufferEncMode
	dec cbor.DecMode

	buffers *sync.Pool // of *bytes.Buffer, without memory: enc takes nothing else
}

// newCBORValues panics if the library refuses the options: they are constant, so the first test would find out.
func newCBORValues() cborValues {
	enc, err := cbor.EncOptions{
		Time:    cbor.TimeRFC3339Nano, // the default cuts fractions of a second off
		TimeTag: cbor.EncTagRequired,
	}.UserBufferEncMode()
	if err != nil {
		panic("BUG: " + err.Error())
	}
	dec, err := cbor.DecOptions{
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		MaxNestedLevels:  32,
		MaxArrayElements: math.MaxInt32, // the size of a message is the limit
		MaxMapPairs:      math.MaxInt32,
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
	if err := c.dec.Unmarshal(data, v); err != nil {
		return c.decodeError(err, data, v)
	}
	return nil
}

func cborEncodeError(err error, v any) error {
	var unsupported *cbor.UnsupportedTypeError
	if errors.As(err, &unsupported) {
		return &TypeError{Want: "a type that CBOR can encode", Got: fmt.Sprintf("%T", v), Err: err}
	}
	return fmt.Errorf("asterisque: encode %T as CBOR: %w", v, err)
}

func (c cborValues) decodeError(err error, data []byte, v any) error {
	var mismatch *cbor.UnmarshalTypeError
	switch {
	case errors.As(err, &mismatch):
		return &TypeError{Want: mismatch.GoType, Got: "CBOR " + mismatch.CBORType, Err: err}
	case c.dec.Wellformed(data) != nil:
		return fmt.Errorf("asterisque: malformed CBOR: %w", err)
	default:
		return fmt.Errorf("asterisque: decode CBOR into %T: %w", v, err)
	}
}
