// Package codec has the codecs for the values that calls carry, and [Abort], the error that ends a
// call or a session on both sides of the wire.
//
// An [Abort] has the reason of the end, the side that reported it, and whether the call may be
// repeated. Branch with errors.Is on the Err values, such as [ErrOverloaded]; [Repeatable] and
// [RetryAfter] determine the next step.
//
// [Values] encodes parameters, stream elements and results: [CBOR], [JSON] and [Raw] come with the
// library. A [Weigher] estimates the memory of values before they are decoded.
//
// The messages of the protocol are in package message.
//
// # Exact or refused
//
// A value arrives unchanged, or its sender refuses it before anything is sent, with an error that
// names the place, as in "at .Users[3].Name: a text is not UTF-8". This holds for [CBOR], [JSON]
// and MessagePack (package msgpack):
//
//   - A text is UTF-8, also as a key. Other bytes belong into a []byte.
//   - A time.Time arrives as the same instant, to the nanosecond. CBOR and MessagePack send it in
//     UTC; JSON keeps the offset of its zone, but not the name, and refuses one with seconds in it,
//     as many zones had before 1940. CBOR and JSON refuse years outside of 0 to 9999.
//   - NaN keeps its bits with CBOR and MessagePack, except for a signalling NaN of 32 bits with
//     CBOR, which arrives as a quiet one. JSON has neither NaN nor infinities.
//   - A map with two keys that are equal for the peer is refused, such as the same NaN twice, or
//     int(1) and int64(1) in a map[any]any. Receivers refuse a map that has a key twice.
//   - Values are nested 32 deep at most, with JSON 10,000. A tag of CBOR, such as that of a time,
//     is a level. Pointers that lead to each other without end are refused.
//   - A struct with only unexported fields is refused, unless it is zero or encodes itself: none of
//     its content would arrive.
//   - A big.Int has any size with CBOR, 64 bits with MessagePack, and 10,000 digits with JSON. JSON
//     takes a big.Rat of such numbers, and a big.Float that 64 bits hold.
//
// A nil value arrives as nil, and with CBOR a pointer to the zero time does, too. In an any a value
// arrives as the default type of the codec.
//
// # Types that decode themselves
//
// A type with a method for decoding, such as UnmarshalJSON, UnmarshalText, UnmarshalCBOR,
// UnmarshalMsg or UnmarshalBinary, gets at most the bytes of one message, which is well-formed. The
// type itself has to bound its time and its allocations: the method runs before the handler. A
// session recovers its panics, and the call fails with [ErrPanicked]. [JSON] bounds the bytes that
// encoding/json reads repeatedly for such types. If the type converts digits to a number itself,
// the time grows with the square of their number.
//
// # Concurrency
//
// The value codecs are safe for use by several goroutines at the same time. An Abort is not changed
// once it was returned.
package codec
