package carrier

import (
	"sync/atomic"
	"time"
)

const (
	// An Ack goes along with whatever is written. By itself it goes after so many frames, or after
	// ackDelay.
	ackFrames = 256
	ackBytes  = 256 << 10
	ackDelay  = 20 * time.Millisecond
)

// acks counts what has arrived of the frames that the peer keeps until they are acknowledged.
type acks struct {
	got     atomic.Uint64 // countable frames that have arrived and been dealt with
	waiting atomic.Bool   // the timer will send an Ack

	// These belong to the reader.
	frames uint64 // countable ones since the last Ack of its own
	bytes  int
	timer  *time.Timer // sends an Ack; nil before the first time
}

// countFrame counts a countable frame of size bytes that has been dealt with.
func (c *Carrier) countFrame(size int) {
	a := c.acks
	a.got.Store(a.got.Load() + 1) // by the reader alone
	a.frames++
	a.bytes += size
	if a.frames >= ackFrames || a.bytes >= ackBytes {
		a.frames, a.bytes = 0, 0
		c.ack(ackFrames / 2)
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
		c.ack(1)
	})
}

// Received returns how many countable frames have arrived and been dealt with.
func (c *Carrier) Received() uint64 { return c.acks.got.Load() }

// Ack takes what the peer has acknowledged. It reports false if so many were never sent.
func (c *Carrier) Ack(count uint64) (ok bool) { return c.out.Ack(count) }

// Has reports whether what a peer lacks that has received so many frames can be sent again.
func (c *Carrier) Has(received uint64) bool { return c.out.Has(received) }
