package carrier

import (
	"time"

	"github.com/asterisque-go/asterisque/wire"
)

// A message of which a part has crossed the Wire holds memory for all of it, on the side that reads
// as on the one that writes. A peer that keeps it there at no cost, with a byte now and then, is
// lost.

// leastRate is how many bytes of a message that has begun cross in a second, on average.
const leastRate = 16 << 10

// crossing is a message, or a batch of them, of which only a part has crossed the Wire.
type crossing struct {
	number uint64        // how many had crossed before it
	since  time.Duration // when it was first seen, by the node's clock; 0: there is none
	from   uint64        // bytes that had crossed then
}

// crossings are the message that is arriving, and the batch that is leaving.
type crossings struct{ in, out crossing }

// passed returns how long the crossing of the given number has been seen, and how many bytes have
// crossed meanwhile, which are bytes in all. Another one than before begins now.
func (c *crossing) passed(number, bytes uint64, now time.Duration) (time.Duration, uint64) {
	if c.since == 0 || c.number != number {
		*c = crossing{number: number, since: now, from: bytes}
	}
	return now - c.since, bytes - c.from
}

// late reports whether n bytes should not have taken so long, if such a message has a time of grace
// besides.
func late(took, grace time.Duration, n uint64) bool {
	return took-grace > time.Duration(n/leastRate)*time.Second
}

// receiving returns what a message holds of which a part has arrived over w. If w does not tell it
// is 0.
func receiving(w wire.Wire) int {
	if r, ok := w.(wire.Meter); ok {
		return r.Receiving()
	}
	return 0
}
