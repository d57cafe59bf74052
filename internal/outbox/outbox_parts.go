package outbox

import (
	"github.com/asterisque-go/asterisque/codec/message"
)

// leastPart is the smallest size of parts, in bytes.
const leastPart = 4 << 10

// Divide sets the size of parts. Messages of more than most bytes are sent in parts of that size,
// and other messages may be sent between the parts. most is clamped to the range from 4 KiB to the
// 64 KiB that a part may have. Divide may be called again.
func (o *Outbox) Divide(most int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.part = min(max(most, leastPart), message.MaxPart)
}

// partLocked returns the current size of parts. Parts have their largest size while the path has
// room for whole batches.
func (o *Outbox) partLocked() int {
	if o.batch.most >= batchSize || o.part > message.MaxPart {
		return o.part
	}
	return min(o.part, max(int(o.batch.most), leastPart))
}

// divided reports whether m is sent in parts of most bytes. An abort is divided only if it has to
// be, since that of an opener must not.
func (m *Message) divided(most int) bool {
	if m.Abort != nil && most < message.MaxPart {
		most = message.MaxPart
	}
	return m.size() > most
}

// leavesLocked returns how many bytes of m, the next message, are sent now. If it is the whole of
// m, the caller sends m. If it is a part, leavesLocked has sent that part. A negative number means
// that there is no room.
func (o *Outbox) leavesLocked(m *Message, size int) int {
	piece := size
	if part := o.partLocked(); m.begun || m.divided(part) {
		piece = min(size, part)
	}
	switch {
	case o.batch.loaded() && piece > o.batch.room():
		return -1
	case m.begun && m.Type == message.OpenType: // its Departer handles its expiry
	case !m.begun && piece == size:
		return size
	default:
		if _, ok := m.timeLeft(); !ok {
			return size
		}
	}
	return size - o.departPartLocked(m.flow, m)
}

// departPartLocked encodes the next part of m, and returns the remaining bytes of its frame.
func (o *Outbox) departPartLocked(f *Flow, m *Message) (rest int) {
	if m.begun {
		o.markPendingLocked()
	} else {
		o.beginLocked(f, m)
	}
	p := f.backlog.fragmenter
	part := message.Part{Pipe: f.id}
	if p.left == 0 {
		part.Whole = uint64(p.whole)
	}
	o.batch.addPart(&part, m, p, min(o.partLocked(), p.rest()), o.lends)
	if o.log != nil {
		o.log.counted()
	}
	return p.rest()
}

// beginLocked prepares m to be sent in parts.
func (o *Outbox) beginLocked(f *Flow, m *Message) {
	ttl, _ := m.timeLeft()
	o.leaveLocked(f, m)
	p := &fragmenter{open: m.Type == message.OpenType}
	if m.Abort != nil {
		p.around = m.appendTo(nil, f.stamp(ttl))
		p.at = len(p.around)
	} else {
		p.around, p.at = m.appendAround(make([]byte, 0, HeadSize+m.size()-len(m.Payload)), f.stamp(ttl))
	}
	p.whole = len(p.around) + len(m.Payload)
	if o.fragmented == nil {
		o.fragmented = new(fragmented)
	}
	p.number = o.fragmented.begin(f)
	f.remember().fragmenter = p
	m.begun = true
	m.Loss = 0 // it is not judged any more
	if m.Type == message.OpenType {
		f.reference = parted
		m.Departer.Depart(f.id)
	}
}

// departedLocked is called for a message that has left the queue and was partly sent. It reports
// whether the last part was sent; otherwise the message has expired.
func (o *Outbox) departedLocked(f *Flow, m *Message) bool {
	if f.backlog.fragmenter.rest() > 0 {
		o.stopLocked(f)
		o.expireLocked(f, m)
		return false
	}
	o.forgetPartsLocked(f)
	o.countLocked(f, m)
	return true
}

// Underway returns the number of the partly sent message that began first, or 0.
func (o *Outbox) Underway() (number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fragmented == nil || len(o.fragmented.flows) == 0 {
		return 0
	}
	return o.fragmented.flows[0].number()
}

// Unfinished reports whether the Open of f is partly sent. It is for an Open that has departed.
func (o *Outbox) Unfinished(f *Flow) bool {
	if f.reference != parted {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return f.unfinishedOpen()
}

// stopLocked informs the peer that no further part follows of the partly sent message of f. The
// information goes into the batch at once, because later messages may rely on it.
func (o *Outbox) stopLocked(f *Flow) {
	if o.forgetPartsLocked(f) {
		o.appendLocked(&message.Part{Pipe: f.id, GivenUp: true})
	}
}
