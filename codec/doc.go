// Package codec turns the four messages of protocol 1 into bytes and back, holds the [Abort] that
// ends a call or a session on both sides of the wire, and the codecs for the values that calls
// carry.
//
//   - [Open] starts a pipe (one running call), [Block] carries a piece of one of its two streams,
//     [Close] ends it, and a [Control] speaks about the session as a whole. Each is one frame: a
//     single CBOR array of definite length.
//   - [Abort] says why something ended, who said so, and whether the call may be repeated.
//   - [Values] encodes parameters, stream elements and results: [CBOR], [JSON] and [Raw] come with
//     the library. A [Weigher] tells what they become in memory, before they are decoded.
//
// # Ownership
//
// AppendTo copies all it is given. What a Parse function returns shares memory with the frame it
// was given, so it is good for as long as the frame is left alone; Messages of an Abort and names
// of codecs are copies.
//
// # Concurrency
//
// Messages are plain values without a lock. The value codecs are safe for use by several goroutines
// at the same time.
//
// # Errors
//
// The Parse functions accept what the protocol allows and nothing else; their only error is a
// [*FrameError], and errors.Is(err, [ErrProtocol]) holds for it. The specification is in the spec
// folder of the repository.
package codec
