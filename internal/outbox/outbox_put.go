package outbox

import "github.com/asterisque-go/asterisque/codec/message"

// Put accepts m for the pipe of f and keeps no part of it but its Memory. It never blocks. If write
// is true, there was no writer, and the caller is the writer now. The errors are ErrClosed,
// ErrEnded and *TooLargeError; nothing is sent then.
func (o *Outbox) Put(f *Flow, m *Message) (write bool, err error) {
	write, _, err = o.put(f, m, false)
	return write, err
}

// PutMore is Put for one of many small Blocks that follow each other. While the batch has room and
// there is no writer, the Block waits in the batch for the next ones. If later is true, the caller
// has to see to it that somebody calls Claim soon.
func (o *Outbox) PutMore(f *Flow, m *Message) (write, later bool, err error) {
	return o.put(f, m, true)
}

// put is PutMore if more Blocks are likely to follow, and else Put.
func (o *Outbox) put(f *Flow, m *Message, more bool) (write, later bool, err error) {
	large := o.tooLarge(m)
	if large == nil {
		o.prepare(m)
	}
	o.mu.Lock()
	defer o.unlock()
	o.admitLocked() // the Open of the pipe may be among what has entered
	next, ok := f.state.next(m.event())
	switch {
	case o.writer.current().closed():
		return false, false, ErrClosed
	case !ok:
		return false, false, ErrEnded
	case m.Type == message.OpenType && o.noOpens:
		return false, false, ErrNoOpens
	case large != nil:
		return false, false, large
	}
	if m.Pressed && f.thin(m) {
		f.droppedAtTail(1)
		m.free()
		o.dropLocked(f, m, Thinned)
		return false, false, nil
	}
	f.tellTailGap(m)
	f.state = next // before an Open departs, or is dropped
	o.departOrWaitLocked(f, m)
	if more && o.queue.len() == 0 && o.batch.fits(m) {
		// whoever is announced has to come, even if an Open that enters wakes the writer meanwhile
		if was, later := o.writer.to(announce); !was.present() {
			return false, later, nil
		}
	}
	return o.writer.become(), false, nil
}

// Claim is called by whoever has come to write the Blocks that PutMore has let wait. If write is
// true, there is something to write, and the caller is the writer now.
func (o *Outbox) Claim() (write bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writer.to(come)
	return (!o.batch.empty() || o.queue.len() > 0) && o.writer.become()
}

// Enter is Put for an Open, without the lock, on a flow that gets no other message. f belongs to
// the Outbox until Finish has returned, and m until Depart or Discard is called, or Cancel or
// Finish has returned. The only error is *TooLargeError.
func (o *Outbox) Enter(f *Flow, m *Message) (write bool, err error) {
	if err := o.tooLarge(m); err != nil {
		return false, err
	}
	o.prepare(m)
	m.flow, f.tenure = f, untilOpenLeaves
	first, refused := o.intake.push(m)
	if refused {
		m.free()
		o.mu.Lock()
		defer o.unlock()
		o.dropLocked(f, m, Closed)
		return false, nil
	}
	// The first caller finds a writer, or becomes it, and the others rely on that. A writer that
	// finds nothing to write looks into the intake once more after it has said that it goes: see
	// Take.
	return first && o.writer.become(), nil
}

// Room returns a channel that is closed when the pipe of f has room in the queue again, or nil if
// it has room now. If the Outbox is closed first, the channel never is. alone says that no message
// of the pipe waits.
func (o *Outbox) Room(f *Flow) (room <-chan struct{}, alone bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return f.room()
}

// Cancel drops the messages of f that wait; why is reported. departed says that the peer may know
// of the pipe. Otherwise the peer never will, and an Open that is still to come is refused with
// ErrEnded. unsent says that the Open was dropped: if the peer knows of the pipe, some parts of the
// Open have left, and the peer is told that no other follows. Once the Open has departed and the
// Close was put, nothing is dropped.
func (o *Outbox) Cancel(f *Flow, why Reason) (departed, unsent bool) {
	o.mu.Lock()
	defer o.unlock()
	o.admitLocked()
	if f.state != closing {
		o.stopLocked(f)
		unsent = o.clearLocked(f, why)
	}
	f.apply(cancel)
	return f.state.departed(), unsent
}

// Finish drops the messages of f that wait, because the peer has closed the pipe or the call is
// over, and rejects later ones. why is reported. When Finish has returned, the Outbox does not
// refer to f any more. unsent says that the Open was dropped, or the rest of its parts.
func (o *Outbox) Finish(f *Flow, why Reason) (unsent bool) {
	if f.Released() {
		return false
	}
	o.mu.Lock()
	defer o.unlock()
	o.admitLocked()
	return o.finishLocked(f, why)
}

// FinishPipe is Finish for a pipe that the peer has closed, and of which only the Outbox knows
// still: its last message is leaving in parts. Without such a message it does nothing.
func (o *Outbox) FinishPipe(id uint64, why Reason) {
	o.mu.Lock()
	defer o.unlock()
	if o.underway == nil {
		return
	}
	if f := o.underway.find(id); f != nil {
		o.finishLocked(f, why)
	}
}

func (o *Outbox) finishLocked(f *Flow, why Reason) (unsent bool) {
	o.forgetPartsLocked(f) // the peer wants no more of the pipe, not even a word
	unsent = o.clearLocked(f, why)
	f.apply(finish)
	return unsent
}

// EndOpens rejects further Opens: Put returns ErrNoOpens, and an Open that enters is discarded as
// Ended. Earlier Opens leave.
func (o *Outbox) EndOpens() {
	o.mu.Lock()
	defer o.unlock()
	o.admitLocked()
	o.noOpens = true
}

// Close drops the messages that wait behind the departing batch, adds c as the last frame unless it
// is nil, and makes every later Put fail with ErrClosed. It never blocks; write is as for Put.
func (o *Outbox) Close(c message.Control) (write bool) {
	o.mu.Lock()
	defer o.unlock()
	was, closes := o.writer.to(end)
	if !closes {
		return false
	}
	o.admitAllLocked(o.intake.close())
	if o.log != nil {
		o.news.gone.join(o.log.clear())
		o.log, o.flight = nil, amount{}
	}
	o.discardLocked()
	o.controls = controls{}
	if c != nil {
		o.appendLocked(c)
	}
	return !was.present()
}

// tooLarge returns an error if the peer would not take m.
func (o *Outbox) tooLarge(m *Message) error {
	if size := m.size(); size > o.MaxSize() {
		return &TooLargeError{Size: size, Limit: o.MaxSize()}
	}
	return nil
}

// prepare copies a large payload that is to be lent, before the lock is taken: nobody has to wait
// for that.
func (o *Outbox) prepare(m *Message) {
	if o.lends && len(m.Payload) >= leastLent && o.writer.current().present() || len(m.Payload) > message.MaxPart {
		m.own()
	}
}

// admitLocked lets all Opens that have entered depart or wait.
func (o *Outbox) admitLocked() {
	if !o.intake.empty() {
		o.admitAllLocked(o.intake.take())
	}
}

// admitAllLocked lets m, and those that entered after it, depart or wait.
func (o *Outbox) admitAllLocked(m *Message) {
	for m != nil {
		f, next := m.flow, m.older // m is its caller's again as soon as it has departed
		m.older = nil
		switch _, ok := f.state.next(putOpen); {
		case o.writer.current().closed():
			m.free()
			o.dropLocked(f, m, Closed)
		case !ok: // it was cancelled
			m.free()
			o.news.gone.add(m)
		case o.noOpens:
			m.free()
			o.dropLocked(f, m, Ended)
		default:
			o.departOrWaitLocked(f, m)
		}
		m = next
	}
}

// departOrWaitLocked lets m depart or wait. Without a Wire every message waits, and while no more
// may be in flight: in the queue it can be taken back, and can expire. If m has entered, neither m
// nor f may be touched after that.
func (o *Outbox) departOrWaitLocked(f *Flow, m *Message) {
	if o.queue.len() == 0 && !o.writer.current().halted() && o.batch.fits(m) && o.gate.lets(o.batch.size()) && !m.divided(o.partLocked()) {
		o.departLocked(f, m)
	} else {
		o.queue.push(f, m, o.flushes.begun)
	}
}
