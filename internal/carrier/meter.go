package carrier

import (
	"sync/atomic"

	"github.com/asterisque-go/asterisque/wire"
)

// meter counts the frames and batches that have crossed the Wire, and records the activity of the
// reader and the writer.
type meter struct {
	frames  atomic.Uint64 // frames that have arrived; used if the Wire does not count bytes
	batches atomic.Uint64 // batches that have been written
	busy    atomic.Int32  // see held and inside
	writing atomic.Bool   // a write is in progress that may block
}

// The reader is busy while it does not wait for the peer: it has stopped at a limit, or it runs
// application code.
const (
	heldUp     = 1
	insideCode = 1 << 8 // for each section of code; not only the reader may run one
)

// held reports whether the reader is busy, and so does not wait for the peer.
func (m *meter) held() bool { return m.busy.Load() != 0 }

// inside reports whether the reader runs application code.
func (m *meter) inside() bool { return m.busy.Load() >= insideCode }

// progress returns two numbers that change with every receive and send over w. They count bytes if
// w does so.
func (m *meter) progress(w wire.Wire) (received, sent uint64, metered bool) {
	if own, ok := w.(wire.Meter); ok {
		received, sent = own.Progress()
		return received, sent, true
	}
	return m.frames.Load(), m.batches.Load(), false
}
