package carrier

import (
	"encoding/binary"
	"time"
)

// coalescer decides whether a writer yields the processor before it takes a batch. Senders of its
// session that are about to send then share the system call. In a session with one caller no other
// sender exists, and the caller has waited in vain for all other sessions of the process. Therefore
// each yield in a row that was both long and in vain raises the number of batches that are taken
// without a yield.
//
// A yield is short while no other goroutine is ready to run. Then the yield keeps a thread of Go's
// scheduler awake, which makes the call faster.
type coalescer struct {
	vain uint8 // number of yields in a row that were long and in vain, up to mostVain
	skip uint8 // number of batches to take without a yield
}

const (
	// longTurn is longer than a yield to no goroutine, and shorter than a yield to some.
	longTurn = 30 * time.Microsecond
	// mostVain bounds the number of batches without a yield: 3, 15, and then 63.
	mostVain = 3
)

// next returns the state after a yield of the given duration. had reports whether the batch gained
// frames of other senders.
func (c coalescer) next(turn time.Duration, had bool) coalescer {
	if had || turn < longTurn {
		return coalescer{}
	}
	c.vain = min(c.vain+1, mostVain)
	c.skip = 1<<(2*c.vain) - 1
	return c
}

// manyFrames reports whether batch, which is not empty, holds more than one frame.
func manyFrames(batch []byte) bool {
	return uint64(len(batch)) != 4+uint64(binary.BigEndian.Uint32(batch))
}
