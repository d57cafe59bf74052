package outbox

import (
	"encoding/binary"
	"fmt"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/fifo"
)

// log keeps what has been taken until the peer has acknowledged it, so that it can be sent again
// over another Wire. It holds copies: what a writer has taken goes back to its pool.
//
// Countable frames are numbered from 1; see the specification, section 14. What is kept still
// counts as not written: a slow peer is back-pressure, and not memory.
type log struct {
	received func() uint64 // how many countable frames have arrived from the peer; fixed, as most
	most     int           // of beside

	entries fifo.Queue[entry] // guarded by the lock of the Outbox, as all below
	chunk   []byte            // where the next entry may find room
	put     uint64            // countable frames that have been put into batches
	taken   uint64            // of those, what the writer has taken
	acked   uint64            // of those, what the peer has acknowledged
	said    uint64            // what the last Ack of this side said
	passing []span            // frames of the departing batch that are not countable
	beside  int               // bytes that the entries hold for which no message is counted
	lent    bool              // a writer reads what is kept
}

// entry is one batch.
type entry struct {
	chunk  []byte // of which frames is a part
	frames []byte // whole frames, each behind its length
	last   uint64 // number of the last countable one
	holds  amount
}

// span is where something begins and ends.
type span struct{ from, to int }

// heldEntry is what an entry takes besides its frames.
const heldEntry = 80

// beside returns how many bytes e holds for which no message is counted: those of Controls.
func (e *entry) beside() int { return max(0, heldEntry+len(e.frames)-e.holds.bytes) }

// Keep makes the Outbox keep what it has given out until [Outbox.Ack]. received tells how many
// countable frames have arrived here; it is called with the lock of the Outbox held. Controls,
// which no limit counts, may hold most bytes, and then are ErrFlood. Keep is called before
// everything else.
func (o *Outbox) Keep(received func() uint64, most int) { o.log = &log{received: received, most: most} }

// add keeps a copy of what in batch has to be sent again: of the countable frames.
func (l *log) add(batch []byte, holds amount) {
	passing := l.passing
	l.passing = l.passing[:0]
	if l.put == l.taken {
		return
	}
	if cap(l.chunk)-len(l.chunk) < len(batch) {
		l.chunk = grow(nil, max(len(batch), smallSize+1))
	}
	start := len(l.chunk)
	from := 0
	for _, p := range passing {
		l.chunk = append(l.chunk, batch[from:p.from]...)
		from = p.to
	}
	l.chunk = append(l.chunk, batch[from:]...)
	l.taken = l.put
	e := entry{chunk: l.chunk, frames: l.chunk[start:], last: l.put, holds: holds}
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

// due reports whether the peer does not know of all that has arrived.
func (l *log) due() (count uint64, ok bool) {
	count = l.received()
	return count, count > l.said
}

// Ack says that the peer has received count countable frames. It reports false if there never were
// so many.
func (o *Outbox) Ack(count uint64) (ok bool) {
	o.mu.Lock()
	defer o.unlock()
	if o.log == nil {
		return true
	}
	return o.ackLocked(count)
}

func (o *Outbox) ackLocked(count uint64) (ok bool) {
	l := o.log
	if count > l.taken {
		return false
	}
	l.acked = max(l.acked, count)
	for l.entries.Len() > 0 && l.entries.Peek().last <= l.acked {
		o.goneLocked(l.drop())
	}
	return true
}

// PutAck sends an Ack if at least least countable frames have arrived since the last one. write is
// as for Put.
func (o *Outbox) PutAck(least uint64) (write bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.log == nil {
		return false
	}
	count, ok := o.log.due()
	if !ok || count-o.log.said < least {
		return false
	}
	o.controls.ackDue = true
	return !o.writing.Swap(true)
}

func (o *Outbox) appendAckLocked(count uint64) {
	o.log.said = count
	o.appendLocked(message.Ack{Count: count})
}

// Halt lets nobody write any more, because the Wire is lost. If claimed is true, nobody is writing;
// otherwise somebody is, and will find out, in [Outbox.Take] or because the Wire fails.
func (o *Outbox) Halt() (claimed bool) {
	o.mu.Lock()
	defer o.unlock()
	o.halted = true
	return !o.writing.Swap(true)
}

// Has reports whether what a peer lacks can be had that has received so many countable frames.
func (o *Outbox) Has(received uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log != nil && o.log.has(received)
}

// has is called with the lock of the Outbox held.
func (l *log) has(received uint64) bool { return received >= l.acked && received <= l.taken }

// Resume goes on after Halt, over another Wire, once nobody writes any more. received is how many
// countable frames the peer has. The frames it lacks are returned, each behind its length, to be
// written before anything else by the caller, who is the writer now, and who calls [Outbox.Resent]
// then. It is an error if they cannot be had.
func (o *Outbox) Resume(received uint64) (frames [][]byte, err error) {
	o.mu.Lock()
	defer o.unlock()
	l := o.log
	switch {
	case l == nil:
		return nil, ErrClosed
	case !l.has(received):
		return nil, fmt.Errorf("outbox: the peer has received %d frames, but %d were sent, and it has acknowledged %d", received, l.taken, l.acked)
	}
	o.flight = amount{}
	o.ackLocked(received)
	for i := range l.entries.Len() {
		e := l.entries.At(i)
		frames = append(frames, behind(e.frames, e.last, received))
	}
	o.admitLocked() // into the queue, where they are by priority
	l.lent, o.halted = true, false
	return frames, nil
}

// behind returns those of frames, of which the last countable one has the number last, that come
// behind number n.
func behind(frames []byte, last, n uint64) []byte {
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

// Resent says that what Resume returned has been written.
func (o *Outbox) Resent() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.log != nil {
		o.log.lent = false
	}
	o.flushes.written()
}

// clear forgets everything.
func (l *log) clear() (held amount) {
	for l.entries.Len() > 0 {
		a := l.drop()
		held.messages += a.messages
		held.bytes += a.bytes
	}
	return held
}
