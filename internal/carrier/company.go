package carrier

import (
	"encoding/binary"
	"time"
)

// company says whether a writer lets others run before it takes a batch: those of its session who
// are about to send share the system call then. Where a session has one caller, nobody comes, and
// the caller has waited for all other sessions of the process. So the more often in a row that was
// both long and in vain, the more batches are taken without waiting for company.
//
// While nothing else wants to run, it is not long. Then it keeps a thread of Go's scheduler awake,
// and the call is faster for it.
type company struct {
	vain uint8 // how often in a row it was long and in vain, up to mostVain
	skip uint8 // how many batches are to be taken without it
}

const (
	// longTurn is more than a turn of nobody takes, and less than one of some others.
	longTurn = 30 * time.Microsecond
	// mostVain bounds the batches that are taken without company: to 3, 15, and then 63.
	mostVain = 3
)

// next returns what follows a turn of the others, after which the batch had company or had not.
func (c company) next(turn time.Duration, had bool) company {
	if had || turn < longTurn {
		return company{}
	}
	c.vain = min(c.vain+1, mostVain)
	c.skip = 1<<(2*c.vain) - 1
	return c
}

// manyFrames reports whether batch, which is not empty, is more than a frame.
func manyFrames(batch []byte) bool {
	return uint64(len(batch)) != 4+uint64(binary.BigEndian.Uint32(batch))
}
