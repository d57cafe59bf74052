package outbox

import (
	"encoding/binary"
	"sync"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/buffer"
)

const (
	// batchSize is the limit, in bytes, of a batch that is not a single message. With the head of
	// the last frame, such a batch is one packet of the loopback device, which holds 65,483 bytes
	// of a TCP stream. A few bytes more would need a second packet.
	batchSize = 63 << 10

	lengthSize = 4 // of the length before each frame
)

// batch is the frames that the writer takes next, each behind its length.
type batch struct {
	frames   []byte
	segments *segments // payloads that are not copied into frames; nil until there are some
	holds    amount    // its messages
	parts    int32     // bytes of parts; their messages are counted with the last part
	most     int32     // limit of bytes
	marked   bool      // it begins with a mark
}

// frame is content of a batch that is not a message.
type frame interface{ AppendTo([]byte) []byte }

func (b *batch) empty() bool { return len(b.frames) == 0 }

// size returns the bytes of the batch.
func (b *batch) size() int { return len(b.frames) + b.segments.size() }

// loaded reports whether the batch holds messages or parts. Controls do not count: there may always
// be some, and they must not delay a large message.
func (b *batch) loaded() bool { return b.holds.messages > 0 || b.parts > 0 }

// room returns the number of bytes that still fit into the batch.
func (b *batch) room() int { return int(b.most) - b.size() }

// fits reports whether m fits into the batch.
func (b *batch) fits(m *Message) bool { return b.empty() || len(m.Payload) <= b.room() }

// append appends a frame that is not counted, and returns the position of its length.
func (b *batch) append(f frame) (at int) {
	b.frames = grow(b.frames, lengthSize+HeadSize) // enough for most frames
	at = len(b.frames)
	b.frames = f.AppendTo(append(b.frames, 0, 0, 0, 0))
	putLength(b.frames[at:], 0)
	return at
}

// add appends the frame of m and takes over its memory. If lend is true, a large payload in memory
// of its own is not copied.
func (b *batch) add(m *Message, s frameStamp, lend bool) {
	if lend && m.Memory != nil && len(m.Payload) >= leastLent {
		b.lend(m, s)
		return
	}
	b.frames = grow(b.frames, lengthSize+HeadSize+m.size())
	at := len(b.frames)
	b.frames = m.appendTo(append(b.frames, 0, 0, 0, 0), s)
	putLength(b.frames[at:], 0)
	m.free()
}

// lend is add for a message with a payload that is not copied.
func (b *batch) lend(m *Message, s frameStamp) {
	b.frames = grow(b.frames, lengthSize+HeadSize+m.size()-len(m.Payload))
	at := len(b.frames)
	around, place := m.appendAround(append(b.frames, 0, 0, 0, 0), s)
	b.frames = around
	putLength(b.frames[at:], len(m.Payload))
	b.lendPiece(segment{at: place, payload: m.Payload, mem: m.Memory})
	m.Memory = nil
}

// addPart appends the frame of part with the next n bytes of m, which p determines.
func (b *batch) addPart(part *message.Part, m *Message, p *fragmenter, n int, lend bool) {
	b.parts += int32(n)
	head, body, tail := p.next(m, n)
	copied := n
	// memory of a caller is valid only during Put
	if lend = lend && len(body) >= leastLent && (m.Memory != nil || m.flow != nil); lend {
		copied -= len(body)
	}
	b.frames = grow(b.frames, lengthSize+HeadSize+copied)
	at := len(b.frames)
	around, place := part.AppendAround(append(b.frames, 0, 0, 0, 0), n)
	var end [HeadSize]byte // the bytes behind those of the part
	behind := end[:copy(end[:], around[place:])]
	b.frames = append(around[:place], head...)
	var mem *buffer.Buffer
	if p.rest(m) == 0 {
		mem, m.Memory = m.Memory, nil
	}
	switch {
	case lend:
		b.lendPiece(segment{at: len(b.frames), payload: body, mem: mem})
	case mem != nil:
		// earlier parts in it may be being written
		b.frames = append(b.frames, body...)
		b.lendPiece(segment{at: len(b.frames), mem: mem})
	default:
		b.frames = append(b.frames, body...)
	}
	b.frames = append(append(b.frames, tail...), behind...)
	putLength(b.frames[at:], n-copied)
}

// lendPiece adds a payload that is not copied into the frames.
func (b *batch) lendPiece(p segment) {
	if b.segments == nil {
		b.segments = new(segments)
	}
	b.segments.add(p)
}

// take empties the batch, and returns its frames and its count of messages. Lent payloads stay, for
// takeLent.
func (b *batch) take() (frames []byte, holds amount) {
	frames, holds = b.frames, b.holds
	b.frames, b.holds, b.parts, b.marked = nil, amount{}, 0, false
	return frames, holds
}

// takeLent returns the lent payloads of frames. The next batch reuses the lists of spare, which is
// empty or nil. Without lent payloads, takeLent returns spare.
func (b *batch) takeLent(frames []byte, spare *segments) *segments {
	if b.segments.empty() {
		return spare
	}
	l := b.segments
	b.segments = spare
	l.join(frames)
	return l
}

// reuse reuses the memory of frames, which have been written, for the batch. It reports whether the
// batch can use that memory.
func (b *batch) reuse(frames []byte) bool {
	if b.frames != nil || cap(frames) > largeSize {
		return false
	}
	b.frames = frames[:0]
	return true
}

// freeIfEmpty releases the memory of an empty batch.
func (b *batch) freeIfEmpty() {
	if b.empty() {
		freeBuffer(b.frames)
		b.frames = nil
	}
}

// putLength writes the length of the frame into the four bytes reserved before it. elsewhere bytes
// of the frame are outside of b.
func putLength(b []byte, elsewhere int) {
	binary.BigEndian.PutUint32(b, uint32(len(b)-lengthSize+elsewhere))
}

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

const (
	largeSize = 72 << 10 // a batch, and the Controls sent with it
	smallSize = 512      // a few small messages
)

// large and small hold the memory of batches. An idle session releases its memory, so that a
// thousand idle sessions hold none.
var (
	large = sync.Pool{New: func() any { return new([largeSize]byte) }}
	small = sync.Pool{New: func() any { return new([smallSize]byte) }}
)

// grow returns b with room for n more bytes.
func grow(b []byte, n int) []byte {
	need := len(b) + n
	if need <= cap(b) {
		return b
	}
	var to []byte
	switch {
	case need <= smallSize:
		to = small.Get().(*[smallSize]byte)[:0]
	case need <= largeSize:
		to = large.Get().(*[largeSize]byte)[:0]
	default:
		to = make([]byte, 0, max(need, 2*cap(b)))
	}
	to = append(to, b...)
	freeBuffer(b)
	return to
}

// freeBuffer returns b to its pool, if it came from one.
func freeBuffer(b []byte) {
	switch cap(b) {
	case smallSize:
		small.Put((*[smallSize]byte)(b[:smallSize]))
	case largeSize:
		large.Put((*[largeSize]byte)(b[:largeSize]))
	}
}
