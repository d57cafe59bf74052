package outbox

import "github.com/asterisque-go/asterisque/codec/message"

// Drop describes a dropped message.
type Drop struct {
	Open   bool // an Open, and not a Block
	Reason Reason
	Marker any
}

// droppedMessages are the dropped messages that are reported after the lock is released.
type droppedMessages struct {
	reported []Drop
	returned []returnedBlock
}

// returnedBlock is a dropped Block that is reported to its sender.
type returnedBlock struct {
	to      Sender
	payload int
}

// report adds an Open or a Block to the report for the application.
func (d *droppedMessages) report(m *Message, why Reason) {
	d.reported = append(d.reported, Drop{Open: m.Type == message.OpenType, Reason: why, Marker: m.Marker})
}

// giveBack adds m to the Blocks that are reported to their senders.
func (d *droppedMessages) giveBack(m *Message) {
	d.returned = append(d.returned, returnedBlock{to: m.Sender, payload: len(m.Payload)})
}

// tell reports to the senders, and then to the application by dropped, which may be nil.
func (d *droppedMessages) tell(dropped func([]Drop)) {
	for _, r := range d.returned {
		r.to.Dropped(r.payload)
	}
	if len(d.reported) > 0 {
		dropped(d.reported)
	}
}
