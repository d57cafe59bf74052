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
