package outbox

import "github.com/asterisque-go/asterisque/codec/message"

// PutControl accepts a Control. It is not counted and waits for no other message but those of the
// departing batch. Of Pongs only the newest departs, and of Credits for Opens the one with the
// highest limit. Nothing that is put after a Drain departs before it. The errors are ErrClosed and
// ErrFlood.
func (o *Outbox) PutControl(c message.Control) (write bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.refusesControlLocked(); err != nil {
		return false, err
	}
	if _, ok := c.(message.Drain); ok {
		o.appendLocked(c) // before any refusal that is put after it: it says why
	} else {
		o.controls.put(c)
	}
	return o.writer.become(), nil
}

// PutAhead puts a Control ahead of what the caller is about to put, with which it is written.
// Otherwise it is as PutControl.
func (o *Outbox) PutAhead(c message.Control) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.refusesControlLocked(); err != nil {
		return err
	}
	o.appendLocked(c)
	return nil
}

// Announce lets a be asked for its Controls when they can depart. It is to be called once for what
// a has to say until it was asked. Otherwise it is as PutControl.
func (o *Outbox) Announce(a Announcer) (write bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.refusesControlLocked(); err != nil {
		return false, err
	}
	o.controls.announced.Push(a)
	return o.writer.become(), nil
}

// PutAck sends an Ack if at least least countable frames have arrived since the last one. write is
// as for Put.
func (o *Outbox) PutAck(least uint64) (write bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.log == nil {
		return false
	}
	if _, due := o.log.due(least); !due {
		return false
	}
	o.log.ackAlone = true
	return o.writer.become()
}

// refusesControlLocked returns why no Control may be put.
func (o *Outbox) refusesControlLocked() error {
	switch {
	case o.writer.current().closed():
		return ErrClosed
	case o.log != nil && o.log.full():
		return ErrFlood
	}
	return nil
}

// noControlsLocked reports whether no Control has to depart.
func (o *Outbox) noControlsLocked() bool {
	return o.controls.empty() && (o.log == nil || !o.log.ackAlone)
}

// departControlsLocked lets the Controls depart.
func (o *Outbox) departControlsLocked() {
	if o.noControlsLocked() {
		return
	}
	o.controls.depart(o.putControl)
	if o.log != nil && o.log.ackAlone {
		o.log.ackAlone = false
		o.departAckLocked()
	}
	o.controls.ask(o.putControl)
}

// departAckLocked acknowledges what has arrived, if the peer does not know that yet.
func (o *Outbox) departAckLocked() {
	if ack, due := o.log.due(1); due {
		o.log.said = ack.Count
		o.appendLocked(ack)
	}
}
