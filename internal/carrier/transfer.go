package carrier

import (
	"time"

	"github.com/asterisque-go/asterisque/wire"
)

// A message that is partly transferred holds memory for its full size on both sides. A peer that
// transfers a byte now and then would keep that memory in use at no cost. Such a peer is considered
// lost.

// leastRate is the minimum average rate of a message that has begun, in bytes per second.
const leastRate = 16 << 10

// transferProgress is the progress of a partly transferred message or batch.
type transferProgress struct {
	number uint64        // number of messages or batches transferred before this one
	since  time.Duration // time of its first look, by the clock of looks; 0: there is none
	from   uint64        // bytes transferred at that time
}

// transfers are the message that is arriving and the batch that is being written.
type transfers struct{ in, out transferProgress }

// passed returns the time since the first look at the crossing with the given number, and the bytes
// transferred since then. bytes is the total of bytes transferred. A number other than that of the
// last look starts a new crossing.
func (c *transferProgress) passed(number, bytes uint64, now time.Duration) (time.Duration, uint64) {
	if c.since == 0 || c.number != number {
		*c = transferProgress{number: number, since: now, from: bytes}
	}
	return now - c.since, bytes - c.from
}

// late reports whether n bytes have taken too long: longer than leastRate allows plus the grace.
func late(took, grace time.Duration, n uint64) bool {
	return took-grace > time.Duration(n/leastRate)*time.Second
}

// receiving returns the bytes held by the message that is arriving over w, or 0 if w does not
// report them.
func receiving(w wire.Wire) int {
	if r, ok := w.(wire.Meter); ok {
		return r.Receiving()
	}
	return 0
}
