package pipe

import (
	"math"

	"github.com/asterisque-go/asterisque/limits"
)

// Window bounds, in bytes, what the peer may send before the application has taken what came earlier. It starts at Initial; it doubles up to Max while the
// application keeps up and the peer uses it up; and it shrinks down to Min as the session fills up. With Initial 0 there is no window; Min is at most Initial, Max at least, and none of
// them exceeds MaxWindow.
type Window struct {
	Initial int
	Min     int
	Max     int
}

// MaxWindow is the largest window, in bytes.
const MaxWindow = math.MaxUint32

// cost is what a Block counts against a window.
func cost(payload []byte) uint64 { return uint64(len(payload)) + limits.Overhead }

// receiving is the receiver's side of a window: three totals since the birth of the pipe. It is small, because there may be many pipes that are idle.
type receiving struct {
	bounds   *Window // of size; not used without a window; fixed
	received uint64
	taken    uint64 // by the application
	granted  uint64 // as the peer knows it
	size     uint32 // 0: no window
	usedUp   bool   // the peer had to wait for more
}

func newReceiving(w *Window) receiving {
	if w == nil {
		return receiving{}
	}
	size := uint32(min(uint64(max(w.Initial, 0)), MaxWindow))
	return receiving{bounds: w, size: size, granted: uint64(size)}
}

// arrive counts a Block and reports false if the peer was not allowed to send it. The last Block may overshoot, so that one larger than the window passes.
func (w *receiving) arrive(n uint64) bool {
	ok := w.size == 0 || w.received < w.granted
	w.received += n
	w.usedUp = w.usedUp || w.received >= w.granted
	return ok
}

// take counts a Block as taken; drained says that none is left, and most is the largest window that the session can afford now. It returns the total to be
// granted, or 0 as long as it is not worth a message.
func (w *receiving) take(n uint64, drained bool, most uint64) uint64 {
	w.taken += n
	if w.size == 0 {
		return 0
	}
	if drained && w.usedUp {
		grown := min(2*uint64(w.size), uint64(max(w.bounds.Max, 0)), MaxWindow)
		w.size = max(w.size, uint32(grown)) // the peer waits for the window, and not for the application
		w.usedUp = false
	}
	least := min(w.bounds.Min, w.bounds.Initial)
	size := max(min(uint64(w.size), most), uint64(max(least, 0)))
	total := w.taken + size
	if total < w.granted+size/2 { // each Credit is a write here, and wakes the peer's reader, who is busy sending
		return 0
	}
	w.granted = total
	return total
}
