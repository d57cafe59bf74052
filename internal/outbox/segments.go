package outbox

import "github.com/asterisque-go/asterisque/internal/buffer"

// leastLent is the size, in bytes, of the smallest payload that is lent to the writer instead of
// being copied into the batch.
const leastLent = 8 << 10

// segments is the payloads of a batch that are not copied into it.
type segments struct {
	pieces   []segment
	bytes    int
	segments [][]byte // the result of join
}

// segment is a payload, or a part of one, in memory of its own. The memory is released when the
// piece has been written.
type segment struct {
	at      int // its place in the batch
	payload []byte
	mem     *buffer.Buffer
}

// empty reports whether there is no memory to release. A nil lent is empty.
func (l *segments) empty() bool { return l == nil || len(l.pieces) == 0 }

// size returns the bytes of the payloads. A nil lent has none.
func (l *segments) size() int {
	if l == nil {
		return 0
	}
	return l.bytes
}

// add adds a payload. l owns its memory from then on.
func (l *segments) add(p segment) {
	l.pieces = append(l.pieces, p)
	l.bytes += len(p.payload)
}

// join computes the segments: frames with the lent payloads in their places.
func (l *segments) join(frames []byte) {
	begin := 0
	for _, p := range l.pieces {
		if len(p.payload) == 0 {
			continue // only memory to release
		}
		l.segments = append(l.segments, frames[begin:p.at], p.payload)
		begin = p.at
	}
	if begin < len(frames) {
		l.segments = append(l.segments, frames[begin:])
	}
}

// release releases the memory of the payloads, and keeps that of the lists.
func (l *segments) release() {
	for _, p := range l.pieces {
		if p.mem != nil { // otherwise further parts of the payload follow
			p.mem.Release()
		}
	}
	clear(l.pieces)
	clear(l.segments)
	l.pieces, l.segments, l.bytes = l.pieces[:0], l.segments[:0], 0
}
