package outbox

import "github.com/asterisque-go/asterisque/codec/message"

// Judge judges a Block that cannot be put now, by its loss rate, as if it were put under pressure.
// It reports whether the Block is dropped. A Block that passes loses its loss rate.
func (o *Outbox) Judge(f *Flow, m *Message) (dropped bool) {
	o.mu.Lock()
	defer o.unlock()
	if _, ok := f.state.next(putBlock); o.writer.current().closed() || !ok || !f.thin(m) {
		return false
	}
	f.droppedAtTail(1)
	o.reportLocked(m, Thinned)
	return true
}

// Expire drops a Block that has expired before all of it was put, and reports it.
func (o *Outbox) Expire(f *Flow, m *Message) {
	o.mu.Lock()
	defer o.unlock()
	if _, ok := f.state.next(putBlock); o.writer.current().closed() || !ok {
		return
	}
	f.droppedAtTail(1)
	o.reportLocked(m, Expired)
}

// Thin judges every queued Block that has not been judged yet, as if it were put now under
// pressure.
func (o *Outbox) Thin() {
	o.mu.Lock()
	defer o.unlock()
	o.queue.thin(func(m *Message) {
		o.flushes.dequeued(m, false)
		o.dropLocked(m.flow, m, Thinned)
		m.free()
	})
	o.droppedLocked()
}

// thin judges a Block once, by its loss rate, and reports whether to drop it. A Block that passes
// is never judged again. At any time, the number of dropped Blocks of a pipe is at most the sum of
// the loss rates of its judged Blocks over 127. The drops are spread evenly.
func (f *Flow) thin(m *Message) bool {
	if m.Type != message.BlockType || m.End || m.Loss == 0 {
		return false
	}
	debt := int(f.debt) + int(m.Loss)
	m.Loss = 0
	if debt < message.MaxLoss {
		f.debt = uint8(debt)
		return false
	}
	f.debt = uint8(debt - message.MaxLoss)
	return true
}

// droppedAtTail records that n Blocks were dropped after all queued ones.
func (f *Flow) droppedAtTail(n uint64) { f.remember().tailGap += n }

// droppedAtHead records that a Block was dropped that was next in turn.
func (f *Flow) droppedAtHead(m *Message) { f.remember().headGap += 1 + m.Skipped }

// tellTailGap stores in m, which is put, the number of Blocks dropped at the tail.
func (f *Flow) tellTailGap(m *Message) {
	if f.backlog != nil && m.tellsGaps() {
		m.Skipped, f.backlog.tailGap = f.backlog.tailGap, 0
	}
}

// tellHeadGap adds to m, which departs, the number of Blocks dropped at the head.
func (f *Flow) tellHeadGap(m *Message) {
	if f.backlog != nil && m.tellsGaps() {
		m.Skipped += f.backlog.headGap
		f.backlog.headGap = 0
	}
}
