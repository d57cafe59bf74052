package flowmodel

// wire keeps the order, and holds a limited number of bytes. A larger message passes when the wire
// is empty.
type wire struct {
	messages    []message
	head        int
	bytes, room int
}

func (w *wire) len() int           { return len(w.messages) - w.head }
func (w *wire) first() *message    { return &w.messages[w.head] }
func (w *wire) fits(size int) bool { return w.bytes == 0 || w.bytes+size <= w.room }

func (w *wire) push(m message) {
	w.messages = append(w.messages, m)
	w.bytes += m.size
}

func (w *wire) pop() message {
	m := w.messages[w.head]
	w.messages[w.head] = message{}
	w.head++
	w.bytes -= m.size
	if w.head == len(w.messages) {
		w.messages, w.head = w.messages[:0], 0
	} else if w.head > 64 && 2*w.head > len(w.messages) {
		n := copy(w.messages, w.messages[w.head:])
		clear(w.messages[n:])
		w.messages, w.head = w.messages[:n], 0
	}
	return m
}
