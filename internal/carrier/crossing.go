package carrier

import (
	"time"

	"github.com/asterisque-go/asterisque/wire"
)

// A message of which a part has crossed the Wire holds memory for all of it, on the side that reads
// as on the one that writes. A peer that lets a byte cross now and then would keep that memory at
// no cost, and so is given up.

// leastRate is how many bytes of a message that has begun cross in a second, on average.
const leastRate = 16 << 10

// crossing is a message, or a batch of them, of which only a part has crossed the Wire.
type crossing struct {
	number uint64        // how many had crossed before it
	since  time.Duration // when it was first seen, by the clock of looks; 0: there is none
	from   uint64        // bytes that had crossed then
}

// crossings are the message that is arriving, and the batch that is leaving.
type crossings struct{ in, out crossing }

// passed returns how long the crossing of the given number has been seen, and how many bytes have
// crossed meanwhile; bytes is how many have crossed in all. If it is not the crossing of the last
// look, it begins now.
func (c *crossing) passed(number, bytes uint64, now time.Duration) (time.Duration, uint64) {
	if c.since == 0 || c.number != number {
		*c = crossing{number: number, since: now, from: bytes}
	}
	return now - c.since, bytes - c.from
}

// late reports whether n bytes have taken too long: more than leastRate allows, and more than the
// grace that comes on top of it.
func late(took, grace time.Duration, n uint64) bool {
	return took-grace > time.Duration(n/leastRate)*time.Second
}

// receiving returns how many bytes a message holds of which a part has arrived over w. It is 0 if w
// does not tell.
func receiving(w wire.Wire) int {
	if r, ok := w.(wire.Meter); ok {
		return r.Receiving()
	}
	return 0
}
