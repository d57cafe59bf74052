package carrier

import (
	"sync/atomic"

	"github.com/asterisque-go/asterisque/wire"
)

// meter tells what has crossed the Wire, and what the reader and the writer are at.
type meter struct {
	frames  atomic.Uint64 // that have arrived; counted if the Wire does not count bytes
	batches atomic.Uint64 // that have been written
	busy    atomic.Int32  // see held and inside
	writing atomic.Bool   // a write has begun that may have to wait
}

// The reader is busy while it does not wait for the peer: a limit holds it up, or it runs code of
// the application.
const (
	heldUp     = 1
	insideCode = 1 << 8 // for each piece of code: others than the reader may run some in its place
)

// held reports whether the reader does not wait for the peer.
func (m *meter) held() bool { return m.busy.Load() != 0 }

// inside reports whether the reader runs code of the application.
func (m *meter) inside() bool { return m.busy.Load() >= insideCode }

// progress returns two numbers that change when something is received and sent over w. They are
// bytes if that is metered.
func (m *meter) progress(w wire.Wire) (received, sent uint64, metered bool) {
	if own, ok := w.(wire.Meter); ok {
		received, sent = own.Progress()
		return received, sent, true
	}
	return m.frames.Load(), m.batches.Load(), false
}
