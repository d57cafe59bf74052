package outbox

// Keep makes the Outbox keep what it has given out until [Outbox.Ack]. received tells how many
// countable frames have arrived here; it is called with the lock of the Outbox held. Controls,
// which no limit counts, may hold most bytes, and then are ErrFlood. Keep is called before
// everything else, and not together with Lend.
func (o *Outbox) Keep(received func() uint64, most int) { o.log = &log{received: received, most: most} }

// Ack says that the peer has received count countable frames. It reports false if there never were
// so many.
func (o *Outbox) Ack(count uint64) (ok bool) {
	o.mu.Lock()
	defer o.unlock()
	return o.log == nil || o.acknowledgedLocked(count)
}

// acknowledgedLocked forgets what the peer has received.
func (o *Outbox) acknowledgedLocked(count uint64) (ok bool) {
	gone, ok := o.log.acknowledged(count)
	o.news.gone.join(gone)
	return ok
}

// Halt lets nobody write any more, because the Wire is lost. If claimed is true, nobody is writing;
// otherwise somebody is, and will find out, in [Outbox.Take] or because the Wire fails.
func (o *Outbox) Halt() (claimed bool) {
	o.mu.Lock()
	defer o.unlock()
	was, _ := o.writer.to(halt)
	return !was.present()
}

// Has reports whether the Outbox still has what a peer lacks that has received so many countable
// frames.
func (o *Outbox) Has(received uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log != nil && o.log.has(received)
}

// Resume goes on after Halt, over another Wire, once nobody writes any more. received is how many
// countable frames the peer has. The caller is the writer now. It writes the frames that Resume
// returns, which the peer lacks, each behind its length, before anything else, and then calls
// [Outbox.Resent]. It is an error if the frames cannot be had.
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
	o.gate.reset()
	o.batch.most, o.batch.marked = batchSize, false
	o.acknowledgedLocked(received)
	o.admitLocked() // into the queue, where they are by priority
	o.writer.to(resume)
	return o.log.lend(received), nil
}

// Resent says that what Resume returned has been written, or never will be.
func (o *Outbox) Resent() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.log != nil {
		o.log.givenBack()
	}
	o.flushes.written()
}
