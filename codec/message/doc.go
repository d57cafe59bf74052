// Package message turns the messages of protocol 1 into bytes and back.
//
// [Open] starts a pipe (one running call), [Block] carries a piece of one of its two streams,
// [Close] ends it, and a [Control] speaks about the session as a whole. A [Part] is a piece of the
// frame of one of the first three that is too long to cross at once. Each is one frame: a single
// CBOR array of definite length. The specification is in the spec folder of the repository.
//
// The package is for programs that speak the protocol themselves: a Wire to peers of another
// protocol, such as package classicwire, a proxy, or a test. Programs that call and serve functions
// need none of it.
//
// # Ownership
//
// AppendTo copies all it is given. What a Parse function returns shares memory with the frame it
// was given, so it is good for as long as the frame is left alone; the Message of an Abort and the
// names of codecs are copies.
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
