package outbox

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
