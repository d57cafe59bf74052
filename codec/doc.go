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
// # Concurrency
//
// The value codecs are safe for use by several goroutines at the same time. An Abort is not changed
// once it was returned.
package codec
