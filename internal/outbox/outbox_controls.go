package outbox

import "github.com/asterisque-go/asterisque/codec/message"

// PutControl accepts a Control. The Control is not counted, and waits for no message outside of the
// departing batch. Only the newest of several Pongs is sent, and only the Credit for Opens with the
// highest limit. No message put after a Drain is sent before it. The errors are ErrClosed and
// ErrFlood.
func (o *Outbox) PutControl(c message.Control) (write bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.refusesControlLocked(); err != nil {
		return false, err
	}
	if _, ok := c.(message.Drain); ok {
		o.appendLocked(c) // precedes later refusals, which it explains
	} else {
		o.controls.put(c)
	}
	return o.writer.become(), nil
}

// PutAhead puts a Control before the message that the caller is about to put, to be written with
// it. Otherwise it is as PutControl.
func (o *Outbox) PutAhead(c message.Control) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.refusesControlLocked(); err != nil {
		return err
	}
	o.appendLocked(c)
	return nil
}

// Announce has a asked for its Controls when they can be sent. It is called once for all Controls
// that a has until it is asked. Otherwise it is as PutControl.
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

// refusesControlLocked returns the error that a new Control gets, or nil.
func (o *Outbox) refusesControlLocked() error {
	switch {
	case o.writer.current().closed():
		return ErrClosed
	case o.log != nil && o.log.full():
		return ErrFlood
	}
	return nil
}

// noControlsLocked reports whether no Control waits.
func (o *Outbox) noControlsLocked() bool {
	return o.controls.empty() && (o.log == nil || !o.log.ackAlone)
}

// departControlsLocked moves the queued Controls into the departing batch.
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

// departAckLocked acknowledges the received frames, if some of them are not acknowledged yet.
func (o *Outbox) departAckLocked() {
	if ack, due := o.log.due(1); due {
		o.log.said = ack.Count
		o.appendLocked(ack)
	}
}
