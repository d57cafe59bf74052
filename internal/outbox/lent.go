package outbox

import "github.com/asterisque-go/asterisque/internal/buffer"

// leastLent is the size, in bytes, of the smallest payload that is lent to the writer instead of
// being copied into the batch.
const leastLent = 8 << 10

// lent is the payloads of a batch that do not stand in it.
type lent struct {
	pieces   []piece
	bytes    int
	segments [][]byte // what join has made
}

// piece is a payload, or a part of one, in memory of its own, which is released when it has been
// written.
type piece struct {
	at      int // where in the batch it belongs
	payload []byte
	mem     *buffer.Buffer
}

// empty reports whether there is nothing to release. A nil lent is empty.
func (l *lent) empty() bool { return l == nil || len(l.pieces) == 0 }

// size returns the bytes of the payloads. A nil lent has none.
func (l *lent) size() int {
	if l == nil {
		return 0
	}
	return l.bytes
}

// add adds a payload, whose memory belongs to l from here on.
func (l *lent) add(p piece) {
	l.pieces = append(l.pieces, p)
	l.bytes += len(p.payload)
}

// join makes the segments: what frames and the lent payloads are when they are put together.
func (l *lent) join(frames []byte) {
	begin := 0
	for _, p := range l.pieces {
		if len(p.payload) == 0 {
			continue // it only has memory to give back
		}
		l.segments = append(l.segments, frames[begin:p.at], p.payload)
		begin = p.at
	}
	if begin < len(frames) {
		l.segments = append(l.segments, frames[begin:])
	}
}

// release gives the memory of the payloads back, and keeps that of the lists.
func (l *lent) release() {
	for _, p := range l.pieces {
		if p.mem != nil { // otherwise other parts of the payload are still to come
			p.mem.Release()
		}
	}
	clear(l.pieces)
	clear(l.segments)
	l.pieces, l.segments, l.bytes = l.pieces[:0], l.segments[:0], 0
}
