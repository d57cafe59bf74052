package buffer

import "math/bits"

// Buffers have sixteen sizes from each power of two to the next, so that the smallest sufficient
// buffer exceeds its content by at most a 16th.
const (
	leastShift = 10 // the smallest has 1 KiB
	stepShift  = 4
	steps      = 1 << stepShift
	// the largest has a 16th more than 4 MiB: room for the fields of a frame around a payload
	classes = (22-leastShift)*steps + 2

	// Least and Most are the sizes, in bytes, of the smallest and the largest buffer that is kept.
	Least = 1 << leastShift
	Most  = 4<<20 + 4<<20/steps
)

// class returns the pool with the buffers for size bytes.
func class(size int) int {
	if size <= Least {
		return 0
	}
	shift := bits.Len(uint(size-1)) - 1 - stepShift // of a step
	return (shift+stepShift-leastShift)*steps + (size-1)>>shift - steps + 1
}

// classSize returns the size of the buffers of a pool.
func classSize(class int) int { return (steps + class%steps) << (class/steps + leastShift - stepShift) }
