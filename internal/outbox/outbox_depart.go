package outbox

import "github.com/asterisque-go/asterisque/codec/message"

// departLocked encodes m at the end of the departing batch, unless m has expired or has become
// useless. From here on the peer may know the pipe. If m was put by Enter, its caller owns m and f
// again, and neither may be accessed afterwards.
func (o *Outbox) departLocked(f *Flow, m *Message) (departed bool) {
	if m.Type == message.ControlType && m.Control == Skip {
		return o.departSkipLocked(f, m)
	}
	ttl, ok := m.timeLeft()
	switch {
	case !ok:
		o.expireLocked(f, m)
		return false
	case f.lacksBegin(m):
		o.deferred.gone.add(m)
		m.free()
		return false
	case m.Whole > 0:
		o.departPieceLocked(f, m)
		return true
	}
	o.leaveLocked(f, m)
	o.countLocked(f, m)
	o.batch.add(m, f.stamp(ttl), o.lends)
	if o.log != nil {
		o.log.counted()
	}
	if m.Type == message.OpenType {
		f.release()
		m.Departer.Depart(f.id)
	}
	return true
}

// leaveLocked completes m, which departs, and assigns the id of its pipe.
func (o *Outbox) leaveLocked(f *Flow, m *Message) {
	if m.Type != message.ControlType {
		o.stopLocked(f) // the rest of a Block in pieces does not come any more
	}
	f.tellHeadGap(m)
	switch {
	case m.Type == message.OpenType:
		f.depart(o.nextID)
		o.nextID += 2
	case m.Type == message.CloseType && m.Skipped > 0 && m.Abort == nil:
		// a Close cannot carry the number of dropped Blocks: an end-of-stream before it does
		o.appendLocked(&message.Block{Pipe: f.id, End: true, Meta: message.Meta{Skipped: m.Skipped}})
	}
	o.markPendingLocked()
}

// markPendingLocked puts the pending mark, if any, before a message that departs.
func (o *Outbox) markPendingLocked() {
	if o.window.pending && o.batch.empty() {
		o.markLocked()
	}
}

// markLocked begins the batch, which is empty, with a mark.
func (o *Outbox) markLocked() {
	o.window.pending = false
	o.appendLocked(message.Ping{N: o.window.written, Holds: o.window.holds()})
	o.batch.marked = true
}

// countLocked counts m when the whole of m is in the departing batch, or is about to be.
func (o *Outbox) countLocked(f *Flow, m *Message) {
	o.batch.holds.add(m)
	if m.Type == message.BlockType && !m.End {
		f.sent += uint32(len(m.Payload))
		if m.Offset == 0 {
			f.sent += o.overhead
		}
	}
}

// expireLocked drops m, which had expired when it was next in turn. A Block of which a part was
// sent counts in full for the peer, as if the whole of it had been sent.
func (o *Outbox) expireLocked(f *Flow, m *Message) {
	if m.Type == message.BlockType {
		f.droppedAtHead(m)
		if m.begun {
			f.sent += uint32(len(m.Payload)) + o.overhead
			m.Sender = nil // its credit is used
		}
	}
	m.free()
	o.dropLocked(f, m, Expired)
}

// departSkipLocked encodes a Skip, unless its Sender does not need it any more.
func (o *Outbox) departSkipLocked(f *Flow, m *Message) (departed bool) {
	total, ok := m.Sender.Skipping(f.sent, m.Skipped)
	if !ok {
		o.deferred.gone.add(m)
		return false
	}
	f.sent = uint32(total)
	o.appendLocked(message.Skip{Pipe: f.id, Sent: total})
	o.batch.holds.add(m)
	return true
}
