package outbox

import (
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/fifo"
)

// controls are the queued Controls. Only the newest Control is kept of each kind that describes a
// current state, so that a peer that does not read cannot make the queue grow. These are encoded
// when they are sent, and not while there is no Wire.
type controls struct {
	pong      message.Pong
	opens     uint64 // the limits of the Credit for Opens
	extra     uint64
	pongDue   bool
	opensDue  bool
	others    fifo.Queue[message.Control] // kinds whose number this side alone determines
	announced fifo.Queue[Announcer]
}

// Announcer has Controls for the peer.
type Announcer interface {
	// Controls passes its Controls to put. It is called with the lock of the Outbox held, when the
	// Controls are sent, and must not call the Outbox.
	Controls(put func(message.Control))
}

func (c *controls) empty() bool {
	return !c.pongDue && !c.opensDue && c.others.Len() == 0 && c.announced.Len() == 0
}

// put adds a Control.
func (c *controls) put(control message.Control) {
	switch control := control.(type) {
	case message.Pong:
		c.pong, c.pongDue = control, true
	case message.Credit:
		c.opens = max(c.opens, control.Limit) // the one with the higher limits may come first
		c.extra = max(c.extra, control.Extra)
		c.opensDue = true
	default:
		c.others.Push(control)
	}
}

// depart removes the queued Controls and passes each to add.
func (c *controls) depart(add func(message.Control)) {
	if c.pongDue {
		c.pongDue = false
		add(c.pong)
	}
	for c.others.Len() > 0 {
		add(c.others.Pop())
	}
	if c.opensDue {
		c.opensDue = false
		add(message.Credit{Opens: true, Limit: c.opens, Extra: c.extra})
	}
}

// ask removes the announced Announcers, and has each pass its Controls to add.
func (c *controls) ask(add func(message.Control)) {
	for c.announced.Len() > 0 {
		c.announced.Pop().Controls(add)
	}
}

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
