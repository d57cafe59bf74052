package outbox

import "github.com/asterisque-go/asterisque/codec/message"

// departLocked encodes m at the end of the departing batch, unless its time is up or it is of no
// use any more. From here on the peer may know of the pipe. If m has entered, neither m nor f may
// be touched after that: they are their caller's again.
func (o *Outbox) departLocked(f *Flow, m *Message) (departed bool) {
	if m.Type == message.ControlType && m.Control == Ask {
		return o.departAskLocked(f, m)
	}
	ttl, ok := m.timeLeft()
	if !ok {
		o.expireLocked(f, m)
		return false
	}
	f.tellHeadGap(m)
	switch m.Type {
	case message.OpenType:
		f.depart(o.nextID)
		o.nextID += 2
	case message.BlockType:
		if !m.End {
			f.sent += uint32(len(m.Payload)) + o.overhead
		}
	case message.CloseType:
		if m.Skipped > 0 && m.Abort == nil {
			// a Close cannot tell of Blocks that were dropped: an end-of-stream before it does
			o.appendLocked(&message.Block{Pipe: f.id, End: true, Meta: message.Meta{Skipped: m.Skipped}})
		}
	}
	if o.gate.pending && o.batch.empty() {
		o.markLocked()
	}
	o.batch.add(m, f.stamp(ttl), o.lends)
	if o.log != nil {
		o.log.counted()
	}
	if m.Type == message.OpenType {
		m.Departer.Depart(f.id)
	}
	return true
}

// expireLocked drops m, whose time was up when its turn came.
func (o *Outbox) expireLocked(f *Flow, m *Message) {
	if m.Type == message.BlockType {
		f.droppedAtHead(m)
	}
	m.free()
	o.dropLocked(f, m, Expired)
}

// departAskLocked encodes an Ask, unless its sender has no use for it any more.
func (o *Outbox) departAskLocked(f *Flow, m *Message) (departed bool) {
	sent, total, ok := m.Sender.Asking(f.sent)
	if !ok {
		o.news.gone.add(m)
		return false
	}
	o.appendLocked(message.Ask{Pipe: f.id, Sent: sent, Total: total})
	o.batch.holds.add(m)
	return true
}
