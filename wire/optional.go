package wire

import (
	"crypto/tls"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// Optional interfaces of a Wire, besides its five methods. The package documentation has a table of
// their purposes, the cost of leaving each out, and the wires that implement it.

// BatchWriter is implemented by a Wire over a byte stream, which can take many frames in one write.
// It spares the session a slice for each frame.
type BatchWriter interface {
	// WriteBatch writes whole frames, each preceded by its length as 4 bytes, big endian. Otherwise
	// it is as WriteFrames.
	WriteBatch(batch []byte) error
}

// VectorWriter is implemented by a Wire if its transport writes from several buffers at once, as
// writev does. It spares the session the copying of large payloads.
type VectorWriter interface {
	BatchWriter

	// WriteVector writes the concatenation of the pieces: whole frames, each preceded by its length
	// as 4 bytes, big endian. A piece may begin and end anywhere. WriteVector may change the slice
	// of pieces, and keeps no part of them when it has returned. Otherwise it is as WriteFrames.
	WriteVector(pieces [][]byte) error
}

// TryWriter is implemented by a Wire that can write the part that its transport accepts without
// blocking. With it a caller sends its own message at once, which saves a switch to a writing
// goroutine.
type TryWriter interface {
	BatchWriter

	// TryWriteBatch writes as much of batch as it can without blocking. It returns the number of
	// bytes taken, which may end inside a frame. The caller writes the rest, with WriteBatch or
	// TryWriteBatch, before anything else.
	TryWriteBatch(batch []byte) (int, error)
}

// Buffered is implemented by a Wire that reads ahead. The reading goroutine calls its methods.
type Buffered interface {
	// Buffered reports whether the next ReadFrame finds a whole frame in memory. While it does, the
	// session gathers answers for a larger batch.
	Buffered() bool

	// Keep transfers the memory of the frame that ReadFrame returned last to its caller, so that a
	// large frame need not be copied. The Wire does not use that memory any more. The caller
	// releases it with Release when it no longer needs the frame, or never.
	//
	// Keep returns nil if the frame has to be copied: it shares its memory with other frames, or is
	// small, or does not fill the memory (Fits of [transport.Buffer]). Keep may always return nil.
	Keep() *transport.Buffer
}

// Meter is implemented by a Wire that counts bytes. Any goroutine may call its methods, and they do
// not block.
type Meter interface {
	// Progress returns how many bytes have been received and sent so far. A session uses it to
	// distinguish a peer that transfers a large frame slowly from one that is lost.
	Progress() (received, sent uint64)

	// Receiving returns how many bytes of memory the Wire has set aside for a partly received
	// frame, or 0 between two frames. It should grow with the received bytes, to no more than about
	// twice their number, and not with the announced length. A Wire over a transport that puts
	// frames together itself returns 0.
	Receiving() int
}

// Secure is implemented by a Wire over TLS.
type Secure interface {
	// ConnectionState returns the TLS state of the connection: its encryption and the certificates
	// of the peer. On the accepting side it is empty before the first ReadFrame or write has
	// returned: these do the TLS handshake.
	ConnectionState() tls.ConnectionState
}

// Private is implemented by a [Wire], or a [Listener], that reports whether its frames, or those of
// its wires, are hidden from third parties: because they are encrypted, or do not leave the
// machine. See [IsPrivate].
type Private interface {
	// Private reports whether the frames are hidden from third parties. It has no side effects.
	Private() bool
}

// Foreign is implemented by a Wire that translates for peers of another protocol. A session over it
// grants no windows and expects none, is not resumed, and sends Pings only to a peer that asks for
// them. Blocks for a function that takes none are dropped: such a peer cannot know that.
type Foreign interface {
	// MaxBlock returns the largest payload of a Block that the peer accepts, in bytes. It is
	// independent of the size limit of other messages.
	MaxBlock() int
}
