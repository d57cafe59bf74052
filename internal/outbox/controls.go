package outbox

import (
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/fifo"
)

// controls are the Controls that have to depart. Of those that say how things stand only the newest
// counts, so that a peer that does not read makes nothing grow: they are encoded when they depart,
// and while there is no Wire not at all.
type controls struct {
	pong      message.Pong // guarded by the lock of the Outbox, as all
	opens     uint64       // the limit of the Credit for Opens
	pongDue   bool
	opensDue  bool
	ackDue    bool                        // what has arrived has to be acknowledged
	others    fifo.Queue[message.Control] // of which this side alone decides how many there are
	announced fifo.Queue[Announcer]
}

// Announcer has something to tell the peer.
type Announcer interface {
	// Controls hands what there is to put. It is called with the lock of the Outbox held, when that
	// departs, and must not call the Outbox.
	Controls(put func(message.Control))
}

func (c *controls) empty() bool {
	return !c.pongDue && !c.opensDue && !c.ackDue && c.others.Len() == 0 && c.announced.Len() == 0
}

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
	switch c := c.(type) {
	case message.Pong:
		o.controls.pong, o.controls.pongDue = c, true
	case message.Credit:
		o.controls.opens = max(o.controls.opens, c.Limit) // who grants more may come first
		o.controls.opensDue = true
	case message.Drain:
		o.appendLocked(c) // before any refusal that is put after it: it says why
	default:
		o.controls.others.Push(c)
	}
	return !o.writing.Swap(true), nil
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
	return !o.writing.Swap(true), nil
}

func (o *Outbox) refusesControlLocked() error {
	switch {
	case o.closed:
		return ErrClosed
	case o.log != nil && o.log.beside > o.log.most:
		return ErrFlood
	}
	return nil
}

// encodeControlsLocked lets the Controls depart.
func (o *Outbox) encodeControlsLocked() {
	c := &o.controls
	if c.empty() {
		return
	}
	if c.pongDue {
		c.pongDue = false
		o.appendLocked(c.pong)
	}
	for c.others.Len() > 0 {
		o.appendLocked(c.others.Pop())
	}
	if c.opensDue {
		c.opensDue = false
		o.appendLocked(message.Credit{Opens: true, Limit: c.opens})
	}
	if c.ackDue {
		c.ackDue = false
		if count, due := o.log.due(); due {
			o.appendAckLocked(count)
		}
	}
	for c.announced.Len() > 0 {
		c.announced.Pop().Controls(o.putControl)
	}
}

// appendControlLocked encodes a Control of an Announcer.
func (o *Outbox) appendControlLocked(c message.Control) { o.appendLocked(c) }
