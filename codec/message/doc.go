// Package message encodes and decodes the messages of protocol 1.
//
// [Open] starts a pipe (one running call), [Block] carries a piece of one of its two streams,
// [Close] ends it, and a [Control] concerns the session as a whole.
//
// A [Part] is a piece of a frame of these three types that is too long to be sent at once. Each is
// one frame: a single CBOR array of definite length. The specification is in the spec folder of the
// repository.
//
// The package is for programs that implement the protocol themselves: a Wire to peers of another
// protocol, such as package classicwire, a proxy, or a test. Programs that only call and serve
// functions do not need it.
//
// # Ownership
//
// AppendTo copies all its input. The result of a Parse function shares memory with its frame, so it
// is valid as long as the frame is not changed; the Message of an Abort and the names of codecs are
// copies.
//
// # Concurrency
//
// Messages are plain values without a lock.
//
// # Errors
//
// The Parse functions accept what the protocol allows and nothing else. Their only error is a
// [*FrameError], and errors.Is(err, [codec.ErrProtocol]) holds for it.
package message
