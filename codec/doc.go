// Package codec holds what calls carry, and what becomes of calls that fail: the codecs for values,
// and the [Abort] that ends a call or a session on both sides of the wire.
//
//   - An [Abort] says why something ended, who said so, and whether the call may be repeated.
//     Branch with errors.Is on the Err values, such as [ErrOverloaded]; [Repeatable] and
//     [RetryAfter] tell what to do next.
//   - [Values] encodes parameters, stream elements and results: [CBOR], [JSON] and [Raw] come with
//     the library. A [Weigher] tells what they become in memory, before they are decoded.
//
// The messages of the protocol are in package message.
//
// # Exact or refused
//
// A value arrives as it was, or its sender refuses it before anything is sent, with an error that
// names the place, as in "at .Users[3].Name: a text is not UTF-8". This holds for [CBOR], [JSON]
// and MessagePack (package msgpack):
//
//   - A text is UTF-8, also as a key. Bytes that are none belong into a []byte.
//   - A time.Time arrives as the same instant, to the nanosecond. CBOR and MessagePack send it in
//     UTC; JSON keeps the offset of its zone, but not the name, and refuses one with seconds in it,
//     as many zones had before 1940. CBOR and JSON refuse years outside of 0 to 9999.
//   - NaN keeps its bits with CBOR and MessagePack, but for a signalling one of 32 bits with CBOR,
//     which arrives quiet. JSON has neither NaN nor infinities.
//   - A map with two keys that are one to the peer is refused, such as the same NaN twice, or
//     int(1) and int64(1) in a map[any]any. Receivers refuse a map that has a key twice.
//   - Values are nested 32 deep at most, with JSON 10,000. A tag of CBOR, such as that of a time,
//     is a level. Pointers that lead to each other without end are refused.
//   - A struct with fields of which none is exported is refused, unless it is zero or encodes
//     itself: nothing of it would arrive.
//   - A big.Int has any size with CBOR, 64 bits with MessagePack, and 10,000 digits with JSON. JSON
//     takes a big.Rat of such numbers, and a big.Float that 64 bits hold.
//
// A nil value arrives as nil, and with CBOR a pointer to the zero time does, too. In an any a value
// arrives in the type that the codec chooses without one.
//
// # Types that decode themselves
//
// A type that has a method for it, such as UnmarshalJSON, UnmarshalText, UnmarshalCBOR,
// UnmarshalMsg or UnmarshalBinary, gets at most the bytes of one message, which is well-formed. How
// long it takes, and what it allocates, is its own to bound: it runs before the handler. A session
// recovers its panics, and the call fails with [ErrPanicked]. [JSON] bounds what package json reads
// for it again and again. Digits that it makes a number of itself take a time that grows with the
// square of their number.
//
// # Concurrency
//
// The value codecs are safe for use by several goroutines at the same time. An Abort is not changed
// once it was returned.
package codec
