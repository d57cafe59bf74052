package outbox

import "github.com/asterisque-go/asterisque/priority"

// messageQueue is the messages that wait behind the departing batch. They share their memory with
// no other code.
type messageQueue struct{ order priority.Queue[Message] }

func (q *messageQueue) len() int { return q.order.Len() }

// push appends m to f. flush is the number of flushes begun.
func (q *messageQueue) push(f *Flow, m *Message, flush uint32) {
	q.order.Push(&f.queue, m.move(f, flush), m.size()+lengthSize)
	f.queued(len(m.Payload))
}

// take removes the next message if its last bytes are sent: see [priority.Queue].
func (q *messageQueue) take(most int, leaves func(m *Message, size int) int) (m Message, all bool) {
	m, all = q.order.Take(most, leaves)
	if all {
		m.flow.dequeued(len(m.Payload))
	}
	return m, all
}

// urgent removes the next message of the highest priority, if messages of lower ones wait and may
// returns true.
func (q *messageQueue) urgent(may func(m *Message, size int) bool) (m Message, ok bool) {
	m, ok = q.order.PopUrgent(may)
	if ok {
		m.flow.dequeued(len(m.Payload))
	}
	return m, ok
}

// clear removes the messages of f, and passes each to drop.
func (q *messageQueue) clear(f *Flow, drop func(Message)) {
	q.order.Clear(&f.queue, drop)
	f.allDequeued()
}

// discard removes all messages, and passes each to drop. A caller that waits for room keeps
// waiting, and has to learn of the end elsewhere.
func (q *messageQueue) discard(drop func(Message)) {
	for q.order.Len() > 0 {
		m, _ := q.order.Pop()
		drop(m)
	}
}

// thin judges every Block that has not been judged yet, removes those to be dropped, and passes
// each to drop.
func (q *messageQueue) thin(drop func(*Message)) {
	gaps := make(map[*Flow]uint64) // Blocks dropped since the last one kept
	q.order.Filter(func(m *Message) bool {
		f := m.flow
		if f.thin(m) {
			gaps[f] += 1 + m.Skipped
			f.dequeued(len(m.Payload))
			drop(m)
			return false
		}
		if m.tellsGaps() {
			m.Skipped += gaps[f]
			delete(gaps, f)
		}
		return true
	})
	for f, n := range gaps {
		f.droppedAtTail(n)
	}
}
