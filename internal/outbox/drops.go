package outbox

import (
	"github.com/asterisque-go/asterisque/codec/message"
)

// Drop describes a dropped message.
type Drop struct {
	Open   bool // an Open, and not a Block
	Reason Reason
	Marker any
}

// droppedMessages are the dropped messages that are reported after the lock is released.
type droppedMessages struct {
	reported []Drop
	returned []returnedBlock
}

// returnedBlock is a dropped Block that is reported to its sender.
type returnedBlock struct {
	to      Sender
	payload int
}

// report adds an Open or a Block to the report for the application.
func (d *droppedMessages) report(m *Message, why Reason) {
	d.reported = append(d.reported, Drop{Open: m.Type == message.OpenType, Reason: why, Marker: m.Marker})
}

// giveBack adds m to the Blocks that are reported to their senders.
func (d *droppedMessages) giveBack(m *Message) {
	d.returned = append(d.returned, returnedBlock{to: m.Sender, payload: len(m.Payload)})
}

// tell reports to the senders, and then to the application by dropped, which may be nil.
func (d *droppedMessages) tell(dropped func([]Drop)) {
	for _, r := range d.returned {
		r.to.Dropped(r.payload)
	}
	if len(d.reported) > 0 {
		dropped(d.reported)
	}
}

// dropLocked drops m, which belongs to f and is not in the queue. Without its Open a pipe is over.
// For a Block, the caller ensures that the next message reports the gap to the peer.
func (o *Outbox) dropLocked(f *Flow, m *Message, why Reason) {
	o.deferred.gone.add(m)
	o.reportLocked(m, why)
	if m.Type == message.OpenType {
		f.apply(openDropped)
		o.clearLocked(f, why)
		f.release()
		m.Departer.Discard(why, false)
	} else if m.Sender != nil {
		o.dropsLocked().giveBack(m)
	}
}

// clearLocked drops all queued messages of f, and reports whether the Open was among them.
func (o *Outbox) clearLocked(f *Flow, why Reason) (open bool) {
	o.queue.clear(f, func(m Message) {
		o.deferred.gone.add(&m)
		o.reportLocked(&m, why)
		o.flushes.dequeued(&m, false)
		open = open || m.Type == message.OpenType
		m.free()
	})
	o.droppedLocked()
	return open
}

// droppedLocked is called when queued messages were dropped. While the gate is closed and all taken
// batches are written, no other code completes the flushes that waited for these messages.
func (o *Outbox) droppedLocked() {
	if o.writer.current() == shut {
		o.flushes.written()
	}
}

// forgetPartsLocked sends no further parts of the message at the head of f. It reports whether some
// were sent.
func (o *Outbox) forgetPartsLocked(f *Flow) bool {
	if f.backlog == nil || f.backlog.fragmenter == nil {
		return false
	}
	o.fragmented.end(f)
	f.backlog.fragmenter = nil
	return true
}

// discardLocked drops all queued messages, because the Outbox is closed.
func (o *Outbox) discardLocked() {
	o.queue.discard(func(m Message) {
		o.deferred.gone.add(&m)
		o.reportLocked(&m, Closed)
		o.forgetPartsLocked(m.flow)
		m.free()
		if m.Type == message.OpenType {
			m.flow.release() // unless it is being sent in parts
			m.Departer.Discard(Closed, m.begun)
		}
	})
}

// reportLocked records for the application that an Open or a Block was dropped.
func (o *Outbox) reportLocked(m *Message, why Reason) {
	switch {
	case o.dropped == nil || m.End || m.Type != message.OpenType && m.Type != message.BlockType:
		return
	case m.Whole > 0 && (len(m.Payload) == 0 || !m.lastPiece()):
		return // its sender has got an error
	}
	o.dropsLocked().report(m, why)
}

// Judge judges a Block that cannot be put now, by its loss rate, as if it were put under pressure.
// It reports whether the Block is dropped. A Block that passes loses its loss rate.
func (o *Outbox) Judge(f *Flow, m *Message) (dropped bool) {
	o.mu.Lock()
	defer o.unlock()
	if _, ok := f.state.next(putBlock); o.writer.current().closed() || !ok || !f.thin(m) {
		return false
	}
	f.droppedAtTail(1)
	o.reportLocked(m, Thinned)
	return true
}

// Expire drops a Block that has expired before all of it was put, and reports it.
func (o *Outbox) Expire(f *Flow, m *Message) {
	o.mu.Lock()
	defer o.unlock()
	if _, ok := f.state.next(putBlock); o.writer.current().closed() || !ok {
		return
	}
	f.droppedAtTail(1)
	o.reportLocked(m, Expired)
}

// Thin judges every queued Block that has not been judged yet, as if it were put now under
// pressure.
func (o *Outbox) Thin() {
	o.mu.Lock()
	defer o.unlock()
	o.queue.thin(func(m *Message) {
		o.flushes.dequeued(m, false)
		o.dropLocked(m.flow, m, Thinned)
		m.free()
	})
	o.droppedLocked()
}

// thin judges a Block once, by its loss rate, and reports whether to drop it. A Block that passes
// is never judged again. At any time, the number of dropped Blocks of a pipe is at most the sum of
// the loss rates of its judged Blocks over 127. The drops are spread evenly.
func (f *Flow) thin(m *Message) bool {
	if m.Type != message.BlockType || m.End || m.Loss == 0 {
		return false
	}
	debt := int(f.debt) + int(m.Loss)
	m.Loss = 0
	if debt < message.MaxLoss {
		f.debt = uint8(debt)
		return false
	}
	f.debt = uint8(debt - message.MaxLoss)
	return true
}

// droppedAtTail records that n Blocks were dropped after all queued ones.
func (f *Flow) droppedAtTail(n uint64) { f.remember().tailGap += n }

// droppedAtHead records that a Block was dropped that was next in turn.
func (f *Flow) droppedAtHead(m *Message) { f.remember().headGap += 1 + m.Skipped }

// tellTailGap stores in m, which is put, the number of Blocks dropped at the tail.
func (f *Flow) tellTailGap(m *Message) {
	if f.backlog != nil && m.tellsGaps() {
		m.Skipped, f.backlog.tailGap = f.backlog.tailGap, 0
	}
}

// tellHeadGap adds to m, which departs, the number of Blocks dropped at the head.
func (f *Flow) tellHeadGap(m *Message) {
	if f.backlog != nil && m.tellsGaps() {
		m.Skipped += f.backlog.headGap
		f.backlog.headGap = 0
	}
}
