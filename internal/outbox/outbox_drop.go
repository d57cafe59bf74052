package outbox

import "github.com/asterisque-go/asterisque/codec/message"

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
