package carrier

import (
	"sync/atomic"
	"time"
)

const (
	// An Ack goes along with whatever the writer writes. Alone it goes after so many frames or
	// bytes, or after ackDelay.
	ackFrames = 256
	ackBytes  = 256 << 10
	ackDelay  = 20 * time.Millisecond
)

// acks counts what has arrived of the frames that the peer keeps until they are acknowledged.
type acks struct {
	writer *writer // fixed

	got     atomic.Uint64 // countable frames that have arrived and been dealt with
	waiting atomic.Bool   // the timer will send an Ack

	// These belong to the reader.
	frames uint64 // countable ones since the reader last sent an Ack alone
	bytes  int
	timer  *time.Timer // sends an Ack; nil before the first time
}

// count counts a countable frame of size bytes that has been dealt with.
func (a *acks) count(size int) {
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

// send tells the peer what has arrived, if that is at least least frames more than it knows.
func (a *acks) send(least uint64) {
	if a.writer.out.PutAck(least) {
		a.writer.write()
	}
}
