package outbox

import (
	"github.com/asterisque-go/asterisque/codec/message"
)

// End is the reason for which Take has returned no batch.
type End uint8

const (
	Idle   End = iota // the Outbox is empty; the caller is not the writer any more
	Full              // as Idle, but messages wait at the gate
	Last              // the Outbox is closed, and nothing will follow; returned once
	Halted            // there is no Wire; the caller stays the writer, and does not write
)

// Take returns the next batch, or nil and the reason. Only the writer may call it.
func (o *Outbox) Take() (batch []byte, end End) {
	o.mu.Lock()
	defer o.unlock()
	if o.writer.current().halted() {
		o.batch.freeIfEmpty()
		return nil, Halted
	}
	for {
		o.admitLocked()
		if o.batch.empty() && o.queue.len() > 0 {
			o.gateLocked()
		}
		o.departControlsLocked()
		o.fillLocked()
		if !o.batch.empty() {
			return o.takeLocked(), Idle
		}
		o.flushes.written()
		o.batch.freeIfEmpty()
		if o.queue.len() > 0 {
			o.writer.to(shuts)
			return nil, Full
		}
		if was, _ := o.writer.to(dry); was == ending {
			return nil, Last // the caller stays the writer, so that no other one gets Last
		}
		if o.intake.empty() || !o.writer.become() {
			return nil, Idle
		} // an Open entered meanwhile, and its caller may still have found a writer
	}
}

// fillLocked moves messages from the queue into the departing batch while there is room and the
// gate is open. If the next message does not fit, the batch is sent without it.
func (o *Outbox) fillLocked() {
	for o.queue.len() > 0 {
		if !o.window.allows(o.batch.size()) {
			o.fillUrgentLocked()
			return
		}
		before := o.batch.parts
		m, all := o.queue.take(o.partLocked()+lengthSize, o.leavesLocked)
		switch {
		case all && m.begun:
			o.flushes.dequeued(&m, o.departedLocked(m.flow, &m))
		case all:
			o.flushes.dequeued(&m, o.departLocked(m.flow, &m))
		case o.batch.parts == before:
			return
		}
	}
}

// fillUrgentLocked moves messages that may pass the gate into the departing batch.
func (o *Outbox) fillUrgentLocked() {
	for {
		m, ok := o.queue.urgent(o.window.passes)
		if !ok {
			return
		}
		o.flushes.dequeued(&m, o.departLocked(m.flow, &m))
	}
}

// takeLocked returns the departing batch, which is not empty, and begins the next one.
func (o *Outbox) takeLocked() (frames []byte) {
	if o.log != nil {
		o.departAckLocked()
		o.log.keep(&o.batch)
	}
	o.window.took(o.batch.size(), o.batch.marked, o.queue.len() > 0)
	frames, o.flight = o.batch.take()
	o.inflight = o.batch.takeLent(frames, o.inflight)
	o.flushes.taken++
	o.window.pending = o.window.due()
	return frames
}

// gateLocked is called when messages wait and the batch is empty. If the gate is closed, it ensures
// that a mark is in flight, which opens the gate on its return.
func (o *Outbox) gateLocked() {
	if o.window.allows(0) {
		o.window.pending = o.window.pending || o.window.due()
	} else if o.window.alone() {
		o.markLocked()
	}
}

// Segments returns the batch that was taken last as a list of segments, to be written one after the
// other, or nil if it is in one piece. They are valid until Written. Only the writer may call
// Segments.
func (o *Outbox) Segments() [][]byte {
	if o.inflight.size() == 0 {
		return nil
	}
	return o.inflight.segments
}

// Written records that batch, as returned by Take, has been written to the Wire, and takes its
// memory back. Only the writer may call it.
func (o *Outbox) Written(batch []byte) {
	if !o.inflight.empty() {
		o.inflight.release()
	}
	o.mu.Lock()
	if o.log == nil {
		o.deferred.gone.join(o.flight)
	}
	o.flight = amount{}
	if o.batch.reuse(batch) {
		batch = nil
	}
	o.flushes.written()
	o.unlock()
	freeBuffer(batch)
}

// Flush returns a channel that is closed when all messages put before have been written to the
// Wire, or dropped. If the Outbox is closed before that, the channel may never be closed.
func (o *Outbox) Flush() <-chan struct{} {
	o.mu.Lock()
	defer o.unlock()
	o.admitLocked()
	departing := !o.batch.empty() || !o.noControlsLocked()
	// the caller of a recent Enter may not be the writer yet
	if !o.writer.current().present() && !departing && o.queue.len() == 0 {
		done := make(chan struct{})
		close(done)
		return done
	}
	return o.flushes.begin(o.queue.len(), departing)
}

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
