package wire

import (
	"crypto/tls"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// What a Wire may have besides its five methods. The package's documentation has a table of what
// each is for, what it costs to leave out, and which wires have it.

// BatchWriter is implemented by a Wire over a byte stream, which can take many frames in one write.
// It spares the session a slice for each frame.
type BatchWriter interface {
	// WriteBatch writes whole frames, each behind its length as 4 bytes, big endian. Otherwise it
	// is as WriteFrames.
	WriteBatch(batch []byte) error
}

// VectorWriter is implemented by a Wire whose transport takes bytes from several places at once, as
// writev does. It spares the session the copying of large payloads.
type VectorWriter interface {
	BatchWriter

	// WriteVector writes what the pieces are when they are put together: whole frames, each behind
	// its length as 4 bytes, big endian. A piece may begin and end anywhere. WriteVector may change
	// the slice of pieces, and keeps no part of them when it has returned. Otherwise it is as
	// WriteFrames.
	WriteVector(pieces [][]byte) error
}

// TryWriter is implemented by a Wire that can tell what its transport takes without waiting. With
// it a caller sends its own message at once, which saves a switch to a writing goroutine.
type TryWriter interface {
	BatchWriter

	// TryWriteBatch writes as much of batch as can be written without waiting. It returns the
	// number of bytes taken, which may end inside a frame. The caller writes the rest, with
	// WriteBatch or TryWriteBatch, before anything else.
	TryWriteBatch(batch []byte) (int, error)
}

// Buffered is implemented by a Wire that reads ahead. The reading goroutine calls its methods.
type Buffered interface {
	// Buffered reports whether the next ReadFrame finds a whole frame in memory. While it does, the
	// session lets answers gather for a larger batch.
	Buffered() bool

	// Keep leaves the memory of the frame that ReadFrame returned last to its caller, so that a
	// large frame need not be copied. The Wire uses that memory no more. The caller gives it back
	// with Release when it does not need the frame any longer, or never does.
	//
	// Keep returns nil if the frame has to be copied: it shares its memory with other frames, or is
	// small, or does not fill the memory (Fits of [transport.Buffer]). It always may.
	Keep() *transport.Buffer
}

// Meter is implemented by a Wire that counts bytes. Any goroutine may call its methods, and they
// wait for nothing.
type Meter interface {
	// Progress returns how many bytes have been received and sent so far. By it a session tells a
	// peer that takes or sends a large frame slowly from one that is lost.
	Progress() (received, sent uint64)

	// Receiving returns how many bytes of memory the Wire has set aside for a frame of which a part
	// has arrived, or 0 if there is none, as between two frames. It should grow with what has
	// arrived, to no more than about twice that, and not with what is announced. A Wire over a
	// transport that puts frames together itself returns 0.
	Receiving() int
}

// Secure is implemented by a Wire over TLS.
type Secure interface {
	// ConnectionState says how the connection is protected and who the peer is. On the accepting
	// side it says nothing before the first ReadFrame or write has returned: these do the TLS
	// handshake.
	ConnectionState() tls.ConnectionState
}

// Private is implemented by a [Wire], or a [Listener], that says whether nobody else can read what
// crosses it, or its wires: because it is encrypted, or does not leave the machine. See
// [IsPrivate].
type Private interface {
	// Private reports whether that is so. It does nothing else.
	Private() bool
}

// Foreign is implemented by a Wire to peers of another protocol, for which it translates. A session
// over it grants no windows and expects none, is not resumed, and sends Pings only to a peer that
// asks for them. Blocks for a function that takes none are dropped: such a peer cannot know.
type Foreign interface {
	// MaxBlock returns the largest payload of a Block that the peer takes, in bytes, whatever the
	// size of the other messages that it takes.
	MaxBlock() int
}
