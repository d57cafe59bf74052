package carrier

import (
	"sync/atomic"
	"time"
)

const (
	// An Ack is sent together with the next batch that the writer writes. Without such a batch, an
	// Ack is sent after this many frames or bytes, or after ackDelay.
	ackFrames = 256
	ackBytes  = 256 << 10
	ackDelay  = 20 * time.Millisecond
)

// ackCounter counts the received frames that the peer keeps until they are acknowledged.
type ackCounter struct {
	writer *writer // fixed

	got     atomic.Uint64 // countable frames that have arrived and been processed
	waiting atomic.Bool   // the timer is about to send an Ack

	// The next fields belong to the reader.
	frames uint64 // countable frames since the reader last caused an Ack
	bytes  int
	timer  *time.Timer // sends an Ack; nil before its first use
}

// count counts a countable frame of size bytes that has been processed.
func (a *ackCounter) count(size int) {
	a.got.Store(a.got.Load() + 1) // by the reader alone
	a.frames++
	a.bytes += size
	if a.frames >= ackFrames || a.bytes >= ackBytes {
		a.frames, a.bytes = 0, 0
		a.send(ackFrames / 2)
	}
	if a.waiting.Swap(true) {
		return
	}
	if a.timer != nil {
		a.timer.Reset(ackDelay)
		return
	}
	a.timer = time.AfterFunc(ackDelay, func() {
		a.waiting.Store(false)
		a.send(1)
	})
}

// send acknowledges the received frames, if at least least of them are not yet acknowledged.
func (a *ackCounter) send(least uint64) {
	if a.writer.out.PutAck(least) {
		a.writer.write()
	}
}
