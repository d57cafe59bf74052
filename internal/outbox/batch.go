package outbox

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/asterisque-go/asterisque/codec/message"
)

// The departing batch is the next to be taken: frames, each behind its length.

const (
	// batchSize bounds the bytes that depart together, unless they are one message. With the last
	// frame's head they are one packet of the loopback device, which holds 65,483 bytes of a TCP
	// stream: a few bytes more would be one more packet.
	batchSize = 63 << 10

	lengthSize = 4 // of the length before each frame
)

// roomLocked reports whether m may join the departing batch.
func (o *Outbox) roomLocked(m *Message) bool {
	return len(o.batch) == 0 || len(o.batch)+o.lent.size()+len(m.Payload) <= batchSize
}

// fillLocked moves what waits into the departing batch while it has room. A large message that
// comes next does not make those before it wait for one batch with it.
func (o *Outbox) fillLocked() {
	for o.queue.Len() > 0 {
		room := math.MaxInt
		if o.holds.messages > 0 {
			// Controls, of which there may always be some, hold up no large one
			room = batchSize - len(o.batch) - o.lent.size()
		}
		m, ok := o.queue.PopAtMost(room)
		if !ok {
			return
		}
		m.flow.left(len(m.Payload))
		before := len(o.batch)
		o.departLocked(m.flow, &m)
		// or its time was up, or it was of no use any more
		o.flushes.left(&m, len(o.batch) > before)
	}
}

// departLocked encodes m at the end of the departing batch, unless its time is up. From here on the
// peer may know of the pipe.
func (o *Outbox) departLocked(f *Flow, m *Message) {
	if m.Type == message.ControlType && m.Control != Stop {
		o.departAskLocked(f, m)
		return
	}
	var ttl uint32
	if !m.Expires.IsZero() {
		left := time.Until(m.Expires)
		if left <= 0 {
			if m.Type == message.BlockType {
				f.more().skipped += 1 + m.Skipped
			}
			m.free()
			o.dropLocked(f, m, Expired)
			return
		}
		ttl = millis(left)
	}
	o.skippedLocked(f, m)
	if m.Type == message.BlockType && !m.End {
		f.sent += uint32(len(m.Payload)) + o.overhead
	}
	if m.Type == message.OpenType {
		f.id, f.departed = o.nextID, true
		o.nextID += 2
	}
	if o.lends && m.Memory != nil && len(m.Payload) >= leastLent {
		o.lendLocked(f, m, ttl)
	} else {
		o.batch = grow(o.batch, lengthSize+HeadSize+m.size())
		start := len(o.batch)
		o.batch = m.appendTo(append(o.batch, 0, 0, 0, 0), f, ttl)
		putLength(o.batch[start:], 0)
		m.free()
	}
	o.holds.add(m)
	if o.log != nil {
		o.log.put++
	}
	if m.Type == message.OpenType {
		m.Departer.Depart(f.id)
	}
}

// departAskLocked encodes an Ask, unless its sender has no use for it any more.
func (o *Outbox) departAskLocked(f *Flow, m *Message) {
	sent, total, ok := m.Sender.Asking(f.sent)
	if !ok {
		o.gone.add(m)
		return
	}
	o.appendLocked(message.Ask{Pipe: f.id, Sent: sent, Total: total})
	o.holds.add(m)
}

// appendLocked encodes a frame that is not counted at the end of the departing batch.
func (o *Outbox) appendLocked(frame interface{ AppendTo([]byte) []byte }) {
	o.batch = grow(o.batch, lengthSize+HeadSize) // enough for most
	start := len(o.batch)
	o.batch = frame.AppendTo(append(o.batch, 0, 0, 0, 0))
	putLength(o.batch[start:], 0)
	switch {
	case o.log == nil:
	case message.Countable(o.batch[start+lengthSize:]):
		o.log.put++
	default:
		o.log.passing = append(o.log.passing, span{start, len(o.batch)})
	}
}

// putLength writes the length of the frame, of which so many bytes are elsewhere, into the four
// bytes reserved before it.
func putLength(b []byte, elsewhere int) {
	binary.BigEndian.PutUint32(b, uint32(len(b)-lengthSize+elsewhere))
}
