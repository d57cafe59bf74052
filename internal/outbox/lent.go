package outbox

import "github.com/asterisque-go/asterisque/internal/buffer"

// leastLent is the size, in bytes, of the smallest payload that is lent to the writer instead of
// being copied into the batch.
const leastLent = 8 << 10

// lent is the payloads of a batch that are not in it.
type lent struct {
	pieces   []piece
	bytes    int
	segments [][]byte // see Segments
}

// size returns the bytes of the payloads. A nil lent has none.
func (l *lent) size() int {
	if l == nil {
		return 0
	}
	return l.bytes
}

// piece is a payload in memory of its own, which is released when it has been written.
type piece struct {
	at      int // where in the batch it belongs
	payload []byte
	mem     *buffer.Buffer
}

func (l *lent) add(p piece) {
	l.pieces = append(l.pieces, p)
	l.bytes += len(p.payload)
}

// join makes the segments: what batch and its lent payloads are when they are put together.
func (l *lent) join(batch []byte) {
	begin := 0
	for _, p := range l.pieces {
		l.segments = append(l.segments, batch[begin:p.at], p.payload)
		begin = p.at
	}
	if begin < len(batch) {
		l.segments = append(l.segments, batch[begin:])
	}
}

// release gives the memory back, and keeps that of the lists.
func (l *lent) release() {
	for _, p := range l.pieces {
		p.mem.Release()
	}
	clear(l.pieces)
	clear(l.segments)
	l.pieces, l.segments, l.bytes = l.pieces[:0], l.segments[:0], 0
}

// Lend lets large payloads be given out in memory of their own, where there are buffers for them:
// then [Outbox.Segments] has to be asked after each Take. It is called before everything else, and
// not together with Keep.
func (o *Outbox) Lend() { o.lends = true }

// prepare copies a large payload that is to be lent: here and now, and not while others wait for
// the lock.
func (o *Outbox) prepare(m *Message) {
	if o.lends && len(m.Payload) >= leastLent && o.writing.Load() {
		m.own()
	}
}

// lendLocked is departLocked for a message with memory of its own: it has waited, or was put with
// it. The payload need not be copied into the batch.
func (o *Outbox) lendLocked(f *Flow, m *Message, ttl uint32) {
	o.batch = grow(o.batch, lengthSize+HeadSize+m.size()-len(m.Payload))
	start := len(o.batch)
	around, at := m.appendAround(append(o.batch, 0, 0, 0, 0), f, ttl)
	o.batch = around
	putLength(o.batch[start:], len(m.Payload))
	if o.lent == nil {
		o.lent = new(lent)
	}
	o.lent.add(piece{at: at, payload: m.Payload, mem: m.Memory})
	m.Memory = nil
}

// Segments returns the batch that was taken last in the pieces in which it is to be written, one
// behind the other, or nil if it is in one. They are valid until Written. Only the writer may ask.
func (o *Outbox) Segments() [][]byte {
	if o.flying == nil || len(o.flying.segments) == 0 {
		return nil
	}
	return o.flying.segments
}
