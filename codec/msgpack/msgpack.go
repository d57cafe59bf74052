// Package msgpack is MessagePack as a codec for the values that calls carry. Give [Values] to
// asterisque.WithCodecs; both sides agree on it by its name, msgpack, of section 7 of the protocol.
//
// # Go types
//
//   - Integers cross exactly. One that a type does not hold is refused, and so is a big.Int of more
//     than 64 bits, for which MessagePack has no type. Without a declared type an integer becomes
//     an int64, and a uint64 beyond that.
//   - A float32 and a float64 keep their type. A floating-point type also accepts integers, and
//     holds the nearest number; an integer type accepts no floating point.
//   - A string is a str, which has to be UTF-8, and a []byte is a bin. Neither is accepted as the
//     other.
//   - A time.Time is the extension type -1, a timestamp, of which all three forms are read. It
//     arrives in UTC. Every other extension type is an [Ext].
//   - A struct is a map by the names of its fields, or those in the tag msgpack (`msgpack:"name"`,
//     with the options omitempty and omitzero; "-" leaves a field out), or without such a tag,
//     those in the tag json. Tags of cbor have no effect: a struct with only these is encoded under
//     the names of its fields, without keyasint and toarray. A field is matched only by its exact
//     name; one that the struct does not have is ignored.
//   - Without a declared type an array becomes a []any, and a map a map[any]any, as with CBOR.
//   - nil is a nil pointer, slice, map or interface, and leaves everything else as it is.
//   - A type with the methods that github.com/tinylib/msgp generates (MarshalMsg, UnmarshalMsg)
//     uses these, and one that is an encoding.BinaryMarshaler and BinaryUnmarshaler is a bin.
//
// # Limits
//
// Values are nested at most 32 deep. A map with a duplicate key is rejected (two NaN are duplicates
// if their bytes are equal), and so are bytes behind the value. Append rejects values that would
// not arrive unchanged, and names the place: package codec has the rules, also for types that
// decode themselves. A time.Time of any year is exact. No memory is allocated for a length that
// exceeds the bytes, and Values is a codec.Weigher, so a session rejects values that would take too
// much memory before it decodes them.
//
// # The underlying library
//
// The encoding is that of github.com/tinylib/msgp, which is well maintained. The mapping to Go
// types is in this package, because the libraries that do that by reflection (vmihailenco/msgpack,
// ugorji/go/codec, shamaton/msgpack, hashicorp/go-msgpack) break the rules of the protocol: each
// silently converts 2^64-1 to -1, and accepts invalid UTF-8, a bin for a str, and a duplicate key.
package msgpack

import (
	"fmt"
	"reflect"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/sizing"
)

// Values is the codec. Values of the types string, []byte, bool, int, int64, uint64 and float64,
// and pointers to them, take a path without reflection.
var Values codec.Values = msgpackValues{}

type msgpackValues struct{}

func (msgpackValues) Name() string { return "msgpack" }

func (msgpackValues) Append(dst []byte, v any) ([]byte, error) {
	if b, ok := appendPlain(dst, v); ok {
		return b, nil
	}
	to := reflect.ValueOf(v)
	if !to.IsValid() {
		return appendNil(dst), nil
	}
	e := encoder{b: dst}
	if err := e.value(planOf(to.Type()), to, 0); err != nil {
		return dst, encodeError(err, v)
	}
	return e.b, nil
}

func (msgpackValues) Decode(data []byte, v any) error {
	if decodePlain(data, v) {
		return nil
	}
	to := reflect.ValueOf(v)
	if to.Kind() != reflect.Pointer || to.IsNil() {
		return &codec.ValueError{Reason: "the value cannot be stored", Err: fmt.Errorf("a %T is no pointer to something", v)}
	}
	r := itemReader{data: data}
	err := r.value(planOf(to.Type().Elem()), to.Elem(), 0)
	if err == nil && r.at < len(data) {
		err = malformed("bytes come after the value")
	}
	return decodeError(err, v)
}

// Weigh implements codec.Weigher.
func (msgpackValues) Weigh(data []byte, t reflect.Type, most int) int {
	w := weigher{Tally: sizing.NewTally(most), itemReader: itemReader{data: data}}
	w.value(weights.Of(t), 0)
	return w.Bytes()
}
