package outbox

import "github.com/asterisque-go/asterisque/codec/message"

// Drop describes a dropped message.
type Drop struct {
	Open   bool // an Open, and not a Block
	Reason Reason
	Marker any
}

// drops are the dropped messages that are reported after the lock is released.
type drops struct {
	reported []Drop
	returned []returned
}

// returned is a dropped Block that is reported to its sender.
type returned struct {
	to      Sender
	payload int
}

// report adds an Open or a Block to the report for the application.
func (d *drops) report(m *Message, why Reason) {
	d.reported = append(d.reported, Drop{Open: m.Type == message.OpenType, Reason: why, Marker: m.Marker})
}

// giveBack adds m to the Blocks that are reported to their senders.
func (d *drops) giveBack(m *Message) {
	d.returned = append(d.returned, returned{to: m.Sender, payload: len(m.Payload)})
}

// tell reports to the senders, and then to the application by dropped, which may be nil.
func (d *drops) tell(dropped func([]Drop)) {
	for _, r := range d.returned {
		r.to.Dropped(r.payload)
	}
	if len(d.reported) > 0 {
		dropped(d.reported)
	}
}
