package outbox

import (
	"encoding/binary"
	"fmt"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/fifo"
)

// log keeps what has been taken until the peer has acknowledged it, so that it can be sent again
// over another Wire. It holds copies, because what a writer has taken goes back to its pool.
//
// Countable frames are numbered from 1; see the specification, section 14. What is kept still
// counts as not written: a slow peer is back-pressure, and not memory.
type log struct {
	received func() uint64 // how many countable frames have arrived from the peer; fixed, as most
	most     int           // of beside

	entries  fifo.Queue[entry]
	chunk    []byte // where the next entry may find room
	put      uint64 // countable frames that have been put into batches
	taken    uint64 // of those, what the writer has taken
	acked    uint64 // of those, what the peer has acknowledged
	said     uint64 // what the last Ack of this side said
	passing  []span // frames of the departing batch that are not countable
	beside   int    // bytes that the entries hold for which no message is counted
	ackAlone bool   // what has arrived is acknowledged even if nothing else departs
	lent     bool   // a writer reads what is kept
}

// entry is one batch.
type entry struct {
	chunk  []byte // of which frames is a part
	frames []byte // whole frames, each behind its length
	last   uint64 // number of the last countable one
	holds  amount
	parts  int // bytes of parts, whose messages are counted elsewhere
}

// span is where something begins and ends.
type span struct{ from, to int }

// heldEntry is what an entry takes besides its frames.
const heldEntry = 80

// beside returns how many bytes e holds for which no message is counted: those of Controls.
func (e *entry) beside() int { return max(0, heldEntry+len(e.frames)-e.parts-e.holds.bytes) }

// full reports whether Controls hold more bytes than they may.
func (l *log) full() bool { return l.beside > l.most }

// counted notes that a message is in the departing batch: its frame is countable.
func (l *log) counted() { l.put++ }

// appended notes that one frame more stands in frames, the departing batch. Its length stands at
// at, and the frame behind that.
func (l *log) appended(frames []byte, at int) {
	if message.Countable(frames[at+lengthSize:]) {
		l.put++
	} else {
		l.passing = append(l.passing, span{at, len(frames)})
	}
}

// keep keeps a copy of the countable frames of the departing batch: only those are sent again.
func (l *log) keep(b *batch) {
	passing := l.passing
	l.passing = l.passing[:0]
	if l.put == l.taken {
		return
	}
	if cap(l.chunk)-len(l.chunk) < len(b.frames) {
		l.chunk = grow(nil, max(len(b.frames), smallSize+1))
	}
	start := len(l.chunk)
	from := 0
	for _, p := range passing {
		l.chunk = append(l.chunk, b.frames[from:p.from]...)
		from = p.to
	}
	l.chunk = append(l.chunk, b.frames[from:]...)
	l.taken = l.put
	e := entry{chunk: l.chunk, frames: l.chunk[start:], last: l.put, holds: b.holds, parts: int(b.parts)}
	l.beside += e.beside()
	l.entries.Push(e)
}

// drop forgets the oldest entry.
func (l *log) drop() amount {
	e := l.entries.Pop()
	l.beside -= e.beside()
	empty := l.entries.Len() == 0
	if empty || !sameArray(e.chunk, l.entries.Peek().chunk) {
		if sameArray(e.chunk, l.chunk) {
			l.chunk = nil
		}
		if !l.lent {
			freeBuffer(e.chunk)
		}
	}
	return e.holds
}

func sameArray(a, b []byte) bool {
	return cap(a) > 0 && cap(b) > 0 && &a[:1][0] == &b[:1][0]
}

// due returns the Ack that this side would send now. ok says that it counts at least least frames
// more than the last one did, and at least one.
func (l *log) due(least uint64) (ack message.Ack, ok bool) {
	count := l.received()
	return message.Ack{Count: count}, count > l.said && count-l.said >= least
}

// acknowledged notes that the peer has received count countable frames. It returns the messages
// that need not be kept any more, or false if there never were so many frames.
func (l *log) acknowledged(count uint64) (gone amount, ok bool) {
	if count > l.taken {
		return amount{}, false
	}
	l.acked = max(l.acked, count)
	for l.entries.Len() > 0 && l.entries.Peek().last <= l.acked {
		gone.join(l.drop())
	}
	return gone, true
}

// has reports whether the log has all frames behind the first received countable ones.
func (l *log) has(received uint64) bool { return received >= l.acked && received <= l.taken }

// lend returns the frames that come behind the first received countable ones, which the peer has
// acknowledged. They stay as they are until givenBack is called.
func (l *log) lend(received uint64) (frames [][]byte) {
	for i := range l.entries.Len() {
		e := l.entries.At(i)
		frames = append(frames, framesBehind(e.frames, e.last, received))
	}
	l.lent = true
	return frames
}

// givenBack notes that nobody reads what lend has returned any more.
func (l *log) givenBack() { l.lent = false }

// lacks returns the error for a peer that has received so many countable frames, whose next ones
// the log does not have.
func (l *log) lacks(received uint64) error {
	return fmt.Errorf("outbox: the peer has received %d frames, but %d were sent, and it has acknowledged %d", received, l.taken, l.acked)
}

// clear forgets everything.
func (l *log) clear() (held amount) {
	for l.entries.Len() > 0 {
		held.join(l.drop())
	}
	return held
}

// framesBehind returns those of frames, of which the last countable one has the number last, that
// come behind number n.
func framesBehind(frames []byte, last, n uint64) []byte {
	number := last - countable(frames)
	for at := 0; ; {
		if number >= n || at == len(frames) {
			return frames[at:]
		}
		size := lengthSize + int(binary.BigEndian.Uint32(frames[at:]))
		number += countable(frames[at : at+size])
		at += size
	}
}

// countable returns how many of frames, each behind its length, are countable.
func countable(frames []byte) (n uint64) {
	for len(frames) > 0 {
		size := lengthSize + int(binary.BigEndian.Uint32(frames))
		if message.Countable(frames[lengthSize:size]) {
			n++
		}
		frames = frames[size:]
	}
	return n
}
