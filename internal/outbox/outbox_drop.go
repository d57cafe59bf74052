package outbox

import "github.com/asterisque-go/asterisque/codec/message"

// Thin judges every Block in the queue that was not judged yet, as if it were put now under
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

// Judge judges a Block that cannot be put now, by its loss rate, as if it were put under pressure.
// It reports whether it is dropped; a survivor has no loss rate any more.
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

// dropLocked forgets m, which belongs to f and is not in the queue. Without its Open a pipe is
// over. For a Block, the caller sees to it that the next one tells the peer.
func (o *Outbox) dropLocked(f *Flow, m *Message, why Reason) {
	o.news.gone.add(m)
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

// clearLocked drops all messages of f that wait, and reports whether the Open was among them.
func (o *Outbox) clearLocked(f *Flow, why Reason) (open bool) {
	o.queue.clear(f, func(m Message) {
		o.news.gone.add(&m)
		o.reportLocked(&m, why)
		o.flushes.dequeued(&m, false)
		open = open || m.Type == message.OpenType
		m.free()
	})
	o.droppedLocked()
	return open
}

// droppedLocked is called when messages of the queue were dropped: nobody else sees that while no
// more may be in flight, and all that was taken is written.
func (o *Outbox) droppedLocked() {
	if o.writer.current() == shut {
		o.flushes.written()
	}
}

// forgetPartsLocked lets no more parts of the message at the head of f leave, and reports whether
// some have.
func (o *Outbox) forgetPartsLocked(f *Flow) bool {
	if f.backlog == nil || f.backlog.parting == nil {
		return false
	}
	o.underway.end(f)
	f.backlog.parting = nil
	return true
}

// discardLocked drops all messages that wait, because the Outbox is closed.
func (o *Outbox) discardLocked() {
	o.queue.discard(func(m Message) {
		o.news.gone.add(&m)
		o.reportLocked(&m, Closed)
		o.forgetPartsLocked(m.flow)
		m.free()
		if m.Type == message.OpenType {
			m.flow.release() // unless it is leaving in parts
			m.Departer.Discard(Closed, m.begun)
		}
	})
}

// reportLocked notes for the application that an Open or a Block was dropped.
func (o *Outbox) reportLocked(m *Message, why Reason) {
	if o.dropped == nil || m.End || m.Type != message.OpenType && m.Type != message.BlockType {
		return
	}
	o.dropsLocked().report(m, why)
}
