package outbox

import (
	"encoding/binary"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/buffer"
)

const (
	// batchSize is how many bytes depart together at most, unless they are one message. With the
	// last frame's head they are one packet of the loopback device, which holds 65,483 bytes of a
	// TCP stream: a few bytes more would be one more packet.
	batchSize = 63 << 10

	lengthSize = 4 // of the length before each frame
)

// batch is what the writer takes next: frames, each behind its length.
type batch struct {
	frames []byte
	lent   *lent  // payloads that belong between them; nil until there are some
	holds  amount // its messages
	parts  int32  // bytes of parts, whose messages it counts with the last one
	most   int32  // bytes that depart together
	marked bool   // it begins with a mark
}

// frame is what a batch can hold besides messages.
type frame interface{ AppendTo([]byte) []byte }

func (b *batch) empty() bool { return len(b.frames) == 0 }

// size returns the bytes of what is there.
func (b *batch) size() int { return len(b.frames) + b.lent.size() }

// loaded reports whether messages, or parts of some, are in it. Controls, of which there may always
// be some, hold up no large one.
func (b *batch) loaded() bool { return b.holds.messages > 0 || b.parts > 0 }

// room returns how many bytes more may depart with what is there.
func (b *batch) room() int { return int(b.most) - b.size() }

// fits reports whether m may join the batch.
func (b *batch) fits(m *Message) bool { return b.empty() || len(m.Payload) <= b.room() }

// append appends a frame that is not counted, and returns where its length begins.
func (b *batch) append(f frame) (at int) {
	b.frames = grow(b.frames, lengthSize+HeadSize) // enough for most
	at = len(b.frames)
	b.frames = f.AppendTo(append(b.frames, 0, 0, 0, 0))
	putLength(b.frames[at:], 0)
	return at
}

// add appends the frame of m, whose memory is m's no longer. If lend is true, a large payload in
// memory of its own is not copied.
func (b *batch) add(m *Message, s stamp, lend bool) {
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

// lend is add for a message whose payload is not copied.
func (b *batch) lend(m *Message, s stamp) {
	b.frames = grow(b.frames, lengthSize+HeadSize+m.size()-len(m.Payload))
	at := len(b.frames)
	around, place := m.appendAround(append(b.frames, 0, 0, 0, 0), s)
	b.frames = around
	putLength(b.frames[at:], len(m.Payload))
	b.lendPiece(piece{at: place, payload: m.Payload, mem: m.Memory})
	m.Memory = nil
}

// addPart appends the frame of part, which has the next n bytes of m. p says which.
func (b *batch) addPart(part *message.Part, m *Message, p *parting, n int, lend bool) {
	b.parts += int32(n)
	head, body, tail := p.next(m.Payload, n)
	copied := n
	if lend = lend && len(body) >= leastLent; lend {
		copied -= len(body)
	}
	b.frames = grow(b.frames, lengthSize+HeadSize+copied)
	at := len(b.frames)
	around, place := part.AppendAround(append(b.frames, 0, 0, 0, 0), n)
	var end [HeadSize]byte // what is behind the bytes of a part
	behind := end[:copy(end[:], around[place:])]
	b.frames = append(around[:place], head...)
	var mem *buffer.Buffer
	if p.rest() == 0 {
		mem, m.Memory = m.Memory, nil
	}
	switch {
	case lend:
		b.lendPiece(piece{at: len(b.frames), payload: body, mem: mem})
	case mem != nil:
		// earlier parts may be in it that are being written
		b.frames = append(b.frames, body...)
		b.lendPiece(piece{at: len(b.frames), mem: mem})
	default:
		b.frames = append(b.frames, body...)
	}
	b.frames = append(append(b.frames, tail...), behind...)
	putLength(b.frames[at:], n-copied)
}

// lendPiece adds a payload that stands beside the frames.
func (b *batch) lendPiece(p piece) {
	if b.lent == nil {
		b.lent = new(lent)
	}
	b.lent.add(p)
}

// take empties the batch, and returns what was in it: the frames and the messages. What is lent
// stays, for takeLent.
func (b *batch) take() (frames []byte, holds amount) {
	frames, holds = b.frames, b.holds
	b.frames, b.holds, b.parts, b.marked = nil, amount{}, 0, false
	return frames, holds
}

// takeLent returns the payloads that belong between frames, and keeps the lists of spare, which is
// empty or nil, for the next batch. If nothing was lent, it returns spare.
func (b *batch) takeLent(frames []byte, spare *lent) *lent {
	if b.lent.empty() {
		return spare
	}
	l := b.lent
	b.lent = spare
	l.join(frames)
	return l
}

// reuse makes the memory of frames, which have been written, the batch's, and reports whether the
// batch has use for it.
func (b *batch) reuse(frames []byte) bool {
	if b.frames != nil || cap(frames) > largeSize {
		return false
	}
	b.frames = frames[:0]
	return true
}

// freeIfEmpty gives the memory of an empty batch back.
func (b *batch) freeIfEmpty() {
	if b.empty() {
		freeBuffer(b.frames)
		b.frames = nil
	}
}

// putLength writes the length of the frame, of which so many bytes are elsewhere, into the four
// bytes reserved before it.
func putLength(b []byte, elsewhere int) {
	binary.BigEndian.PutUint32(b, uint32(len(b)-lengthSize+elsewhere))
}
