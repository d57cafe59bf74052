// Package wire carries whole frames between two programs.
//
// A [Wire] is the pluggable transport below a session: it delivers frames whole, in order and
// without loss, or it fails. This package has wires for TCP, TLS, Unix sockets and in-process
// connections. [Dial] and [Listen] open them by URL ("tcp://127.0.0.1:5330"), [FromConn] makes a
// Wire of any [net.Conn] or [io.ReadWriteCloser], and [Pipe] makes a connected pair. WebSocket,
// QUIC, NATS, smux, child processes and the classic protocol are in the packages below this one.
//
// # Restarts
//
// A listening socket can be handed over from one process to the next, so that a restart rejects no
// connection: [Inherited] takes one from systemd, [ListenerFile] gives one to another process,
// which takes it with [ListenFile], and [ListenOn] takes a [net.Listener]. If the processes share
// nothing, the new one can listen beside the old one, with [Options].ReusePort.
//
// # Custom wires
//
// The author of a Wire implements its five methods, and tests it with the suite in package
// wiretest; [FromConn] makes a Wire of any connection that carries bytes in order. [Register] adds
// a [Transport] for a further URL scheme. Package transport has helpers for authors of transports.
//
// All other interfaces that a session uses are optional. Each can be implemented without the rest;
// they are in optional.go, and the last two in package transport:
//
//	              purpose                     without it                     implemented by
//	BatchWriter   many frames in one write    a slice for each frame         all
//	VectorWriter  large payloads, not copied  a copy of each large payload   TCP, Unix sockets
//	TryWriter     direct writes by callers    a goroutine switch per call    TCP, Unix, Pipe, mem
//	Buffered      answers in batches, and     smaller batches, and a copy    all but WebSocket
//	              large frames, not copied    of each large frame            and classic
//	Meter         slow peers, partial frames  only whole frames count        all
//	Secure        TLS identity of the peer    no certificate of the peer     all over TLS, QUIC
//	Private       secrecy from third parties  depends on the peer's address  listeners
//	Foreign       a peer of another protocol  windows and Pings as usual     classic
//	Admitted      admission by the node       admission by the node          WebSocket, QUIC, NATS,
//	Guarded       before TLS and HTTP         after Accept                   smux; their listeners
//
// A Wire that embeds another one as a [Wire] has none of these, unless it passes them on.
//
// # Concurrency
//
// A session reads a Wire from one goroutine and writes it from one goroutine at a time. Close may
// be called from any goroutine, at any time, more than once, and ends both. A method that panics
// counts as one that failed, and one that ends its goroutine ends the session. Two faults of a Wire
// are fatal for a session: a Close that does not end the other methods, and a method that closes
// the session that waits for it.
package wire

import (
	"errors"
	"net"
)

// ErrFrameTooLarge is returned by ReadFrame when the next frame is larger than the caller allows.
// The Wire cannot be read after it.
var ErrFrameTooLarge = errors.New("wire: frame exceeds the limit")

// Wire carries frames. A frame is any sequence of bytes, the empty one included.
type Wire interface {
	// ReadFrame waits for the next frame and returns it. The slice belongs to the Wire and is valid
	// until the next ReadFrame. A frame of more than max bytes is [ErrFrameTooLarge], before memory
	// is spent on it. After a graceful close by the peer, between two frames, the error is
	// [io.EOF]; inside a frame it is [io.ErrUnexpectedEOF]; after Close on this side it wraps
	// [net.ErrClosed].
	ReadFrame(max int) ([]byte, error)

	// WriteFrames writes every frame whole, in order, and keeps no part of them when it has
	// returned. It blocks while the transport is full; Close ends the wait with an error that wraps
	// [net.ErrClosed]. After an error only Close may be called.
	WriteFrames(frames [][]byte) error

	// Close ends the Wire, and wakes a waiting ReadFrame and WriteFrames. Frames that WriteFrames
	// has accepted are still sent if the transport can do that without blocking. Repeated calls
	// return nil.
	Close() error

	// LocalAddr and RemoteAddr name the ends for logs; they never return nil. Any goroutine may
	// call them at any time, and they do not block.
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}
