package outbox

import (
	"github.com/asterisque-go/asterisque/codec/message"
)

// leastPart is the least that large messages are divided into, in bytes.
const leastPart = 4 << 10

// Divide lets messages of more than most bytes leave in parts of so many, between which others may
// go. most is put between 4 KiB and the 64 KiB that a part may have. It may be called again.
func (o *Outbox) Divide(most int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.part = min(max(most, leastPart), message.MaxPart)
}

// partLocked returns how many bytes of a message leave at a time. While the path has room for
// whole batches, parts are as large as they may be.
func (o *Outbox) partLocked() int {
	if o.batch.most >= batchSize || o.part > message.MaxPart {
		return o.part
	}
	return min(o.part, max(int(o.batch.most), leastPart))
}

// divided reports whether m leaves in parts of most bytes. An abort does only if it has to: that of
// an opener must not.
func (m *Message) divided(most int) bool {
	if m.Abort != nil && most < message.MaxPart {
		most = message.MaxPart
	}
	return m.size() > most
}

// leavesLocked says how much leaves of m, whose turn it is: all of it, of which it is up to the
// caller, or a part, which has departed then. Less than 0: there is no room.
func (o *Outbox) leavesLocked(m *Message, size int) int {
	piece := size
	if part := o.partLocked(); m.begun || m.divided(part) {
		piece = min(size, part)
	}
	switch {
	case o.batch.loaded() && piece > o.batch.room():
		return -1
	case m.begun && m.Type == message.OpenType: // its caller sees to its time
	case !m.begun && piece == size:
		return size
	default:
		if _, ok := m.timeLeft(); !ok {
			return size
		}
	}
	return size - o.departPartLocked(m.flow, m)
}

// departPartLocked encodes the next part of m, and returns how many bytes of its frame are left.
func (o *Outbox) departPartLocked(f *Flow, m *Message) (rest int) {
	if m.begun {
		o.markPendingLocked()
	} else {
		o.beginLocked(f, m)
	}
	p := f.backlog.parting
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

// beginLocked prepares m to leave in parts.
func (o *Outbox) beginLocked(f *Flow, m *Message) {
	ttl, _ := m.timeLeft()
	o.leaveLocked(f, m)
	p := &parting{open: m.Type == message.OpenType}
	if m.Abort != nil {
		p.around = m.appendTo(nil, f.stamp(ttl))
		p.at = len(p.around)
	} else {
		p.around, p.at = m.appendAround(make([]byte, 0, HeadSize+m.size()-len(m.Payload)), f.stamp(ttl))
	}
	p.whole = len(p.around) + len(m.Payload)
	if o.underway == nil {
		o.underway = new(underway)
	}
	p.number = o.underway.begin(f)
	f.remember().parting = p
	m.begun = true
	m.Loss = 0 // it is not judged any more
	if m.Type == message.OpenType {
		f.tenure = parted
		m.Departer.Depart(f.id)
	}
}

// departedLocked is called for a message that has left the queue, and had begun to leave in parts.
// It reports whether the last of these has departed: otherwise its time is up.
func (o *Outbox) departedLocked(f *Flow, m *Message) bool {
	if f.backlog.parting.rest() > 0 {
		o.stopLocked(f)
		o.expireLocked(f, m)
		return false
	}
	o.forgetPartsLocked(f)
	o.countLocked(f, m)
	return true
}

// Underway returns the number of the message that has begun to leave in parts first, of those that
// are not complete; 0: there is none.
func (o *Outbox) Underway() (number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.underway == nil || len(o.underway.flows) == 0 {
		return 0
	}
	return o.underway.flows[0].number()
}

// Unfinished reports whether the Open of f has begun to leave in parts, of which some have not
// left. It is for an Open that has departed.
func (o *Outbox) Unfinished(f *Flow) bool {
	if f.tenure != parted {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return f.unfinishedOpen()
}

// stopLocked tells the peer that nothing follows of what has begun to leave of f. It does so at
// once: what departs later may count on what is given up.
func (o *Outbox) stopLocked(f *Flow) {
	if o.forgetPartsLocked(f) {
		o.appendLocked(&message.Part{Pipe: f.id, GivenUp: true})
	}
}
