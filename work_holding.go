package asterisque

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
)

// holding counts the bytes that running calls hold besides what they are: parameters and what these
// become when they are decoded, answers that wait to leave, and Blocks that nobody waits for any
// more. A call is taken only when there is room for what it brings. It is guarded by the lock of
// its dispatcher.
type holding struct {
	bytes int
	// of those, what calls hold that exceed the room by themselves, beyond what counts of them
	beyond int
	bulky  int         // running calls that are not small
	inside int         // bytes that the parameters of running calls within calls become
	part   limits.Part // bytes, for the owner of the session
}

// add counts bytes more.
func (h *holding) add(bytes int) {
	h.bytes += bytes
	h.part.Tell(h.bytes)
}

// fits reports whether there is room for what j holds while it runs. One always fits; and one that
// exceeds the room by itself does as soon as no other large one runs, and leaves the last eighth to
// small ones.
func (h *holding) fits(j job, room int) bool {
	weight, most, held, small := j.weight(), room, h.bytes-h.beyond, j.task().small()
	if !small {
		most = mostLarge(room)
	}
	switch {
	case h.bytes == 0:
		return true
	case weight > most:
		return h.bulky == 0 && held <= room
	}
	return held+weight <= most
}

// mostLarge returns what calls that are not small may hold.
func mostLarge(room int) int { return room - room/8 }

// carry counts n times what j holds while it runs.
func (h *holding) carry(j job, room, n int) {
	weight, t := j.weight(), j.task()
	h.add(n * weight)
	h.beyond += n * max(0, weight-mostLarge(room))
	if !t.small() {
		h.bulky += n
	}
	if t.nested {
		h.inside += n * t.becomes.bytes()
	}
}

// refusal returns why a call is refused, if it is made within another one and so waits for no room,
// and its parameters become more than there is room for.
func (h *holding) refusal(t *task, room int) *Abort {
	if n := t.becomes.bytes(); t.nested && n > 0 && h.inside+n > room {
		return codec.ErrOverloaded.Withf("the parameters would become %d bytes, and those of calls within calls hold %d of %d here", n, h.inside, room)
	}
	return nil
}

// exceeds reports whether bytes more would be beyond the room.
func (h *holding) exceeds(bytes, room int) bool { return h.bytes-h.beyond+bytes > room }
