// Package wire carries whole frames between two programs.
//
// A [Wire] is the pluggable transport below a session: it delivers frames whole, in order and
// without loss, or it fails. TCP, TLS, Unix sockets and an in-process wire are here. [Dial] and
// [Listen] open them by URL ("tcp://127.0.0.1:5330"), [FromConn] makes a Wire of any [net.Conn] or
// [io.ReadWriteCloser], and [Pipe] two that belong together. WebSocket, QUIC, NATS, smux, child
// processes and the classic protocol are in the packages below this one.
//
// # Restarts
//
// A listening socket can be handed from one process to the next, and then a restart turns nobody
// away: [Inherited] takes one from systemd, [ListenerFile] gives one to another process, whose
// [ListenFile] takes it, and [ListenOn] takes a [net.Listener]. Where processes share nothing, the
// new one can listen beside the old one, with [Options].ReusePort.
//
// # Wires of your own
//
// The author of a Wire implements its five methods, and runs the suite in package wiretest over it;
// [FromConn] does the work for whatever carries bytes in order. With a [Transport] and [Register],
// URLs of a further scheme reach it. Package transport has what authors of transports share.
//
// All else that a session asks of a Wire is optional. Each of these interfaces can be implemented
// without the others; they are in optional.go, and the last two in package transport:
//
//	               for                           without it                     who has it
//	BatchWriter    many frames in one write      a slice for each frame         all
//	VectorWriter   large payloads as they lie    a copy of each large payload   TCP, Unix sockets
//	TryWriter      callers that send themselves  a switch of goroutines a call  TCP, Unix, Pipe, mem
//	Buffered       answers in batches, and       smaller batches, and a copy    all but WebSocket
//	               large frames as they lie      of each large frame            and classic
//	Meter          slow peers and half frames    only whole frames count        all
//	Secure         who the peer is, by TLS       no certificate of the peer     all over TLS, QUIC
//	Private        whether others can read       the peer's address decides     listeners
//	Foreign        a peer of another protocol    windows and Pings as usual     classic
//	Admitted       a place at a node's door,     the node asks for a place      WebSocket, QUIC, NATS, smux
//	Guarded        before TLS and the like       when Accept has returned       their listeners
//
// A Wire that embeds another one as a [Wire] has none of these, unless it passes them on.
//
// # Concurrency
//
// A session reads a Wire from one goroutine and writes it from one goroutine at a time. Close may
// be called from any goroutine, at any time, more than once, and ends both. A method that panics
// counts as one that failed, and one that ends its goroutine ends the session. What a session
// cannot make up for is a Wire whose Close does not end its other methods, or one of whose methods
// closes the session that waits for it.
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
	// is spent on it. After the peer has closed in good order, between two frames, the error is
	// [io.EOF]; inside a frame it is [io.ErrUnexpectedEOF]; after Close on this side it wraps
	// [net.ErrClosed].
	ReadFrame(max int) ([]byte, error)

	// WriteFrames writes every frame whole, in order, and keeps no part of them when it has
	// returned. It blocks while the transport is full; Close ends the wait with an error that wraps
	// [net.ErrClosed]. After an error the Wire is useless but for Close.
	WriteFrames(frames [][]byte) error

	// Close ends the Wire, and a ReadFrame and a WriteFrames that wait. Frames that WriteFrames has
	// accepted still go out where the transport can do that without waiting. Repeated calls return
	// nil.
	Close() error

	// LocalAddr and RemoteAddr name the ends for people and logs; they never return nil. Any
	// goroutine may call them at any time, and they wait for nothing.
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}
