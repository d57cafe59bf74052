package outbox

// amount counts messages and the bytes that they hold.
type amount struct{ messages, bytes int }

// add adds one message.
func (a *amount) add(m *Message) {
	a.messages++
	a.bytes += int(m.Held)
}

// join adds b to a.
func (a *amount) join(b amount) {
	a.messages += b.messages
	a.bytes += b.bytes
}
