package flowmodel

import "github.com/asterisque-go/asterisque/priority"

type messageKind uint8

const (
	openMessage messageKind = iota
	blockMessage
	partMessage   // a part of a Block
	nullMessage   // the null part of a Block that was given up
	skipMessage   // the credit that an idle direction hands back
	endMessage    // the end of a direction
	stopMessage   //
	resultMessage // a Close with a result
	abortMessage  // one without
	creditControl
	opensControl
	extraControl
)

var kindNames = [...]string{
	"Open", "Block", "part", "null part", "Skip", "end", "Stop", "result", "abort", "Credit", "Credit for Opens", "extra Credit",
}

// message is a message in an outbox or on a wire.
type message struct {
	kind    messageKind
	expires bool // it may expire before it departs
	c       *call
	d       *direction
	held    int  // bytes in the count; 0 for Controls
	size    int  // bytes on the wire
	sent    int  // the cost of a Block or a part
	last    bool // it is the last part
	total   int  // the limit of a Control, or the cost of the Block that a part begins; 0: none
}

const controlSize = 16

// outbox holds the messages that wait to be written: Controls separately, all others by priority,
// in the order of their pipes, and fair between pipes.
type outbox struct {
	queue     priority.Queue[message]
	announced []*direction // whose receivers have Credits
	opens     int          // the newest credit for Opens; 0: none
	extra     int          // the newest extra credit; 0: none
}

// put queues a message that has been counted.
func (s *session) put(e *end, m message) {
	if m.c.closed[e.index] {
		e.outbound.remove(m.held)
		return
	}
	if m.kind == resultMessage || m.kind == abortMessage {
		m.c.closed[e.index] = true
	}
	s.check(e.outbound.State() != hard, "a queue is beyond its hard limit")
	e.outbox.queue.Push(&m.c.flow[e.index], m, m.size)
}

// count is put for a message that does not wait for room.
func (s *session) count(e *end, m message) {
	e.outbound.Add(m.held)
	s.put(e, m)
}

// clear drops the queued messages of a call, and reports whether its Open was among them.
func (s *session) clear(e *end, c *call) (unsent bool) {
	e.outbox.queue.Clear(&c.flow[e.index], func(m message) {
		unsent = unsent || m.kind == openMessage
		e.outbound.Remove(1, m.held)
	})
	return unsent
}

// finish is clear for a pipe that the peer has closed: nothing may follow.
func (s *session) finish(e *end, c *call) {
	s.clear(e, c)
	c.closed[e.index] = true
}

// writeStep writes one message to the wire.
func (s *session) writeStep(e *end) callResult {
	o, w := &e.outbox, &s.wires[e.index]
	switch {
	case o.opens == 0 && o.extra == 0 && len(o.announced) == 0:
	case !w.fits(2 * controlSize):
		return blocked
	case o.opens > 0:
		w.push(message{kind: opensControl, size: controlSize, total: o.opens})
		o.opens = 0
		return moved
	case o.extra > 0:
		w.push(message{kind: extraControl, size: controlSize, total: o.extra})
		o.extra = 0
		return moved
	default:
		d := o.announced[0]
		o.announced = o.announced[1:]
		d.sendCredit(w)
		return moved
	}
	m, ok := o.queue.PopIf(func(_ *message, size int) bool { return w.fits(size) })
	if !ok {
		return blocked
	}
	s.depart(e, w, m)
	e.outbound.remove(m.held)
	return moved
}

// depart sends a message, or drops it if it is not needed any more.
func (s *session) depart(e *end, w *wire, m message) {
	switch m.kind {
	case openMessage:
		m.c.departed = true
	case blockMessage, partMessage:
		if m.expires && s.random.oneIn(2) {
			s.counts.Dropped++
			m.d.sent -= m.sent // a Block that does not depart costs nothing
			return
		}
		m.d.departed += m.sent
	case nullMessage:
		m.d.departed += m.sent
	case skipMessage:
		m.d.skips = false
		m.sent = m.d.limit - m.d.sent - m.total
		if m.d.departed != m.d.sent || m.d.cost != 0 || m.sent <= 0 {
			return // the direction is in use again
		}
		s.counts.HandedBack++
		m.d.sent += m.sent
		m.d.departed = m.d.sent
	}
	w.push(m)
}
