// Package wire carries whole frames between two programs.
//
// A Wire is the pluggable transport below a session: it delivers frames whole, in order and without
// loss, or it fails. TCP, TLS, Unix sockets and an in-process wire are here and open by URL
// ("tcp://127.0.0.1:5330"); [FromConn] makes a Wire of any [net.Conn] or [io.ReadWriteCloser];
// further schemes plug in with [Register]. Whoever writes a Wire of their own implements the five
// methods of [Wire] and runs the suite in package wiretest over it.
//
// # Concurrency
//
// A session reads a Wire from one goroutine and writes it from one goroutine at a time; Close may
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

	// Close ends the Wire and wakes whoever reads or writes it. Frames that WriteFrames has
	// accepted still go out where the transport can do that without waiting. Repeated calls return
	// nil.
	Close() error

	// LocalAddr and RemoteAddr name the ends for people and logs; they never return nil. Any
	// goroutine may call them at any time, and they wait for nothing.
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

// BatchWriter is implemented by a Wire over a byte stream, which can take many frames in one write.
// Such a wire spares the session a slice per frame.
type BatchWriter interface {
	// WriteBatch writes whole frames, each behind its length as 4 bytes, big endian. Otherwise it
	// is as WriteFrames.
	WriteBatch(batch []byte) error
}

// VectorWriter is implemented by a Wire whose transport takes bytes from several places at once, as
// writev does. It spares the session the copying of large payloads.
type VectorWriter interface {
	BatchWriter

	// WriteVector writes whole frames, each behind its length as 4 bytes, big endian, which are
	// what the pieces are when they are put together: a piece may begin and end anywhere. It may
	// change the slice of pieces, and keeps no part of them when it has returned. Otherwise it is
	// as WriteFrames.
	WriteVector(pieces [][]byte) error
}

// TryWriter is implemented by a Wire that can tell what its transport takes without waiting. It
// lets a caller send its own message at once, which saves a switch to a writing goroutine.
type TryWriter interface {
	BatchWriter

	// TryWriteBatch writes as much of batch as can be written without blocking and returns the
	// number of bytes taken, which may end inside a frame. The rest has to be written, with
	// WriteBatch or TryWriteBatch, before anything else.
	TryWriteBatch(batch []byte) (int, error)
}

// Buffered is implemented by a Wire that reads ahead.
type Buffered interface {
	// Buffered reports whether the next ReadFrame finds a whole frame in memory. It is called by
	// the reading goroutine.
	Buffered() bool
}

// Meter is implemented by a Wire that counts bytes, so that a peer which sends or takes a large
// frame slowly is not taken for lost.
type Meter interface {
	// Progress returns how many bytes have been received and sent so far. It may be called from any
	// goroutine, and waits for nothing.
	Progress() (received, sent uint64)
}

// Receiver is implemented by a Wire that tells what a frame holds of which only a part has arrived.
// A Wire that puts frames together in memory should be one: nothing else tells a session of that.
type Receiver interface {
	// Receiving returns how many bytes of memory are set aside for such a frame, or 0 if there is
	// none, as between two frames. It should grow with what has arrived, to no more than about
	// twice that, and not with what is announced. It may be called from any goroutine, and waits
	// for nothing.
	Receiving() int
}

// BlockLimiter is implemented by a Wire to peers that take only small Blocks, whatever the size of
// the other messages that they take.
type BlockLimiter interface {
	// MaxBlock returns the largest payload of a Block, in bytes.
	MaxBlock() int
}

// Windowless is implemented by a Wire to peers that know no windows: a session over it grants none,
// and expects none. Nor do they know whether a function takes Blocks: those for one that does not
// are dropped.
type Windowless interface {
	// NoWindows does nothing.
	NoWindows()
}
