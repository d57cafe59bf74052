package outbox

import (
	"encoding/binary"
	"fmt"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/fifo"
)

// resendLog keeps sent frames until the peer has acknowledged them, so that they can be sent again
// over another Wire. It holds copies, because the batch of a writer is returned to its pool.
//
// Countable frames are numbered from 1; see the specification, section 14. Kept frames still count
// as unwritten: a slow peer causes back-pressure, and not growing memory.
type resendLog struct {
	received func() uint64 // returns the number of received countable frames; fixed, as most
	most     int           // limit of beside

	entries  fifo.Queue[loggedBatch]
	chunk    []byte // memory with room for the next entry
	put      uint64 // countable frames that have been put into batches
	taken    uint64 // countable frames that the writer has taken
	acked    uint64 // countable frames that the peer has acknowledged
	said     uint64 // count in the last Ack of this side
	passing  []span // frames of the departing batch that are not countable
	beside   int    // bytes of the entries that no message accounts for
	ackAlone bool   // an Ack is sent even without other frames
	lent     bool   // a writer reads the kept frames
}

// loggedBatch is the frames of one batch.
type loggedBatch struct {
	chunk  []byte // memory that contains frames
	frames []byte // whole frames, each behind its length
	last   uint64 // number of the last countable frame
	holds  amount
	parts  int // bytes of parts, whose messages are counted elsewhere
}

// span is a range of bytes.
type span struct{ from, to int }

// heldEntry is the memory of an entry besides its frames, in bytes.
const heldEntry = 80

// beside returns the bytes of e that no message accounts for: those of Controls.
func (e *loggedBatch) beside() int { return max(0, heldEntry+len(e.frames)-e.parts-e.holds.bytes) }

// full reports whether Controls exceed their limit of bytes.
func (l *resendLog) full() bool { return l.beside > l.most }

// counted records that a message, a countable frame, is in the departing batch.
func (l *resendLog) counted() { l.put++ }

// appended records that a frame was appended to frames, the departing batch. The length of the
// frame is at position at, followed by the frame.
func (l *resendLog) appended(frames []byte, at int) {
	if message.Countable(frames[at+lengthSize:]) {
		l.put++
	} else {
		l.passing = append(l.passing, span{at, len(frames)})
	}
}

// keep copies the countable frames of the departing batch. Other frames are never sent again.
func (l *resendLog) keep(b *batch) {
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
	e := loggedBatch{chunk: l.chunk, frames: l.chunk[start:], last: l.put, holds: b.holds, parts: int(b.parts)}
	l.beside += e.beside()
	l.entries.Push(e)
}

// drop removes the oldest entry.
func (l *resendLog) drop() amount {
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

// due returns the Ack to send now. ok reports that the Ack acknowledges at least least frames more
// than the last one, and at least one more.
func (l *resendLog) due(least uint64) (ack message.Ack, ok bool) {
	count := l.received()
	return message.Ack{Count: count}, count > l.said && count-l.said >= least
}

// acknowledged records that the peer has received count countable frames. It returns the messages
// that are no longer kept, or false if count exceeds the number of sent frames.
func (l *resendLog) acknowledged(count uint64) (gone amount, ok bool) {
	if count > l.taken {
		return amount{}, false
	}
	l.acked = max(l.acked, count)
	for l.entries.Len() > 0 && l.entries.Peek().last <= l.acked {
		gone.join(l.drop())
	}
	return gone, true
}

// has reports whether the log has all countable frames after the first received ones.
func (l *resendLog) has(received uint64) bool { return received >= l.acked && received <= l.taken }

// lend returns the frames after the first received countable ones, which the peer has acknowledged.
// The frames are not changed until givenBack is called.
func (l *resendLog) lend(received uint64) (frames [][]byte) {
	for i := range l.entries.Len() {
		e := l.entries.At(i)
		frames = append(frames, framesBehind(e.frames, e.last, received))
	}
	l.lent = true
	return frames
}

// givenBack records that the frames returned by lend are not read any more.
func (l *resendLog) givenBack() { l.lent = false }

// lacks returns the error for a peer that has received the given number of countable frames, if the
// log does not have the next ones.
func (l *resendLog) lacks(received uint64) error {
	return fmt.Errorf("outbox: the peer has received %d frames, but %d were sent, and it has acknowledged %d", received, l.taken, l.acked)
}

// clear removes all entries.
func (l *resendLog) clear() (held amount) {
	for l.entries.Len() > 0 {
		held.join(l.drop())
	}
	return held
}

// framesBehind returns the part of frames after countable frame n. The last countable frame of
// frames has the number last.
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

// countable returns the number of countable frames in frames, each behind its length.
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

// Keep makes the Outbox keep sent frames until [Outbox.Ack]. received returns the number of
// countable frames that have arrived here; it is called with the lock of the Outbox held. Controls,
// which no limit counts, may hold at most most bytes; beyond that they fail with ErrFlood. Keep is
// called before any other method, and not together with Lend.
func (o *Outbox) Keep(received func() uint64, most int) {
	o.log = &resendLog{received: received, most: most}
}

// Ack records that the peer has received count countable frames. It returns false if count exceeds
// the number of sent frames.
func (o *Outbox) Ack(count uint64) (ok bool) {
	o.mu.Lock()
	defer o.unlock()
	return o.log == nil || o.acknowledgedLocked(count)
}

// acknowledgedLocked drops the frames that the peer has received.
func (o *Outbox) acknowledgedLocked(count uint64) (ok bool) {
	gone, ok := o.log.acknowledged(count)
	o.deferred.gone.join(gone)
	return ok
}

// Halt stops writing, because the Wire is lost. claimed reports that there was no writer, so that
// the caller has become the writer. Otherwise the present writer will notice, in [Outbox.Take] or
// by an error of the Wire.
func (o *Outbox) Halt() (claimed bool) {
	o.mu.Lock()
	defer o.unlock()
	was, _ := o.writer.to(halt)
	return !was.present()
}

// Has reports whether the Outbox still has all frames that a peer lacks, given the number of
// countable frames it has received.
func (o *Outbox) Has(received uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log != nil && o.log.has(received)
}

// Resume continues after Halt over another Wire, once the former writer has ended. received is the
// number of countable frames that the peer has. The caller becomes the writer. Before anything else
// it writes the returned frames, which the peer lacks, each behind its length, and then calls
// [Outbox.Resent]. Resume fails if the frames are not available.
func (o *Outbox) Resume(received uint64) (frames [][]byte, err error) {
	o.mu.Lock()
	defer o.unlock()
	switch {
	case o.log == nil:
		return nil, ErrClosed
	case !o.log.has(received):
		return nil, o.log.lacks(received)
	}
	o.flight = amount{}
	o.window.reset()
	o.batch.most, o.batch.marked = batchSize, false
	o.acknowledgedLocked(received)
	o.admitLocked() // into the queue, which orders them by priority
	o.writer.to(resume)
	return o.log.lend(received), nil
}

// Resent records that the frames of Resume have been written, or never will be.
func (o *Outbox) Resent() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.log != nil {
		o.log.givenBack()
	}
	o.flushes.written()
}
