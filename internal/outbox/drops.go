package outbox

import "github.com/asterisque-go/asterisque/codec/message"

// Drop tells of a message that was dropped.
type Drop struct {
	Open   bool // an Open, and not a Block
	Reason Reason
	Marker any
}

// drops are the dropped messages of which others have to be told, without the lock.
type drops struct {
	reported []Drop
	returned []returned
}

// returned is a Block that its sender has to hear of.
type returned struct {
	to      Sender
	payload int
}

// report adds an Open or a Block to those of which the application hears.
func (d *drops) report(m *Message, why Reason) {
	d.reported = append(d.reported, Drop{Open: m.Type == message.OpenType, Reason: why, Marker: m.Marker})
}

// giveBack adds m to the Blocks of which their senders hear.
func (d *drops) giveBack(m *Message) {
	d.returned = append(d.returned, returned{to: m.Sender, payload: len(m.Payload)})
}

// tell tells the senders, and then the application by dropped, which may be nil.
func (d *drops) tell(dropped func([]Drop)) {
	for _, r := range d.returned {
		r.to.Dropped(r.payload)
	}
	if len(d.reported) > 0 {
		dropped(d.reported)
	}
}
