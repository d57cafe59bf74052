package outbox

// Keep makes the Outbox keep sent frames until [Outbox.Ack]. received returns the number of
// countable frames that have arrived here; it is called with the lock of the Outbox held. Controls,
// which no limit counts, may hold at most most bytes; beyond that they fail with ErrFlood. Keep is
// called before any other method, and not together with Lend.
func (o *Outbox) Keep(received func() uint64, most int) {
	o.log = &resendLog{received: received, most: most}
}

// Ack records that the peer has received count countable frames. It returns false if count exceeds
// the number of sent frames.
func (o *Outbox) Ack(count uint64) (ok bool) {
	o.mu.Lock()
	defer o.unlock()
	return o.log == nil || o.acknowledgedLocked(count)
}

// acknowledgedLocked drops the frames that the peer has received.
func (o *Outbox) acknowledgedLocked(count uint64) (ok bool) {
	gone, ok := o.log.acknowledged(count)
	o.deferred.gone.join(gone)
	return ok
}

// Halt stops writing, because the Wire is lost. claimed reports that there was no writer, so that
// the caller has become the writer. Otherwise the present writer will notice, in [Outbox.Take] or
// by an error of the Wire.
func (o *Outbox) Halt() (claimed bool) {
	o.mu.Lock()
	defer o.unlock()
	was, _ := o.writer.to(halt)
	return !was.present()
}

// Has reports whether the Outbox still has all frames that a peer lacks, given the number of
// countable frames it has received.
func (o *Outbox) Has(received uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log != nil && o.log.has(received)
}

// Resume continues after Halt over another Wire, once the former writer has ended. received is the
// number of countable frames that the peer has. The caller becomes the writer. Before anything else
// it writes the returned frames, which the peer lacks, each behind its length, and then calls
// [Outbox.Resent]. Resume fails if the frames are not available.
func (o *Outbox) Resume(received uint64) (frames [][]byte, err error) {
	o.mu.Lock()
	defer o.unlock()
	switch {
	case o.log == nil:
		return nil, ErrClosed
	case !o.log.has(received):
		return nil, o.log.lacks(received)
	}
	o.flight = amount{}
	o.window.reset()
	o.batch.most, o.batch.marked = batchSize, false
	o.acknowledgedLocked(received)
	o.admitLocked() // into the queue, which orders them by priority
	o.writer.to(resume)
	return o.log.lend(received), nil
}

// Resent records that the frames of Resume have been written, or never will be.
func (o *Outbox) Resent() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.log != nil {
		o.log.givenBack()
	}
	o.flushes.written()
}
