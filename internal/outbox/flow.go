package outbox

import (
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/priority"
)

const (
	// A pipe that has backlogHigh bytes in the queue should wait until they are no more than
	// backlogLow, so that pipes which send all they can share the queue, and the session's limits,
	// evenly.
	backlogHigh = 64 << 10
	backlogLow  = 32 << 10
)

// Flow is one pipe's place in an Outbox. It is guarded by the lock of its Outbox.
//
// The Outbox owns a Flow, and the Departer of its Open, from the first message on: the queue refers
// to both for as long as a message waits, and a message that leaves in parts waits until its last
// part. The owner of the memory gets it back from [Outbox.Finish]. Before that the memory must not
// hold another Flow; [Pool] takes care of it.
type Flow struct {
	queue priority.Flow[Message]
	id    uint64 // zero until the Open has departed
	state flowState
	debt  uint8 // of the loss rate; see thin
	// tenure is written by Enter and, the last time, before the Departer is told. From then on it
	// may be read without the lock.
	tenure tenure
	sent   uint32 // the low bits of the cost of the Blocks that have departed
	// nil until it is needed: most pipes are short calls, which it would make larger
	backlog *backlog
}

// tenure says how long the Outbox refers to a flow.
type tenure uint8

const (
	untilFinish tenure = iota // messages of any kind may wait
	// The Open is the only message, and waits: see Enter.
	untilOpenLeaves
	released // that Open has left whole, or was dropped: nothing refers to the flow
	parted   // the Open leaves in parts, or has left so
)

// release notes that an Open has left whole, or was dropped before any of it had left.
func (f *Flow) release() {
	if f.tenure == untilOpenLeaves {
		f.tenure = released
	}
}

// backlog is what a flow has to remember once its messages wait, or are dropped.
type backlog struct {
	// Blocks dropped at the head: after the one that departed last, and before what waits
	headGap uint64
	tailGap uint64        // Blocks dropped at the tail: behind all that waits
	bytes   int           // of payload in the queue
	room    chan struct{} // closed when bytes has become small again; nil while nobody waits
	parting *parting      // of the message at the head; nil unless a part of it has left
}

// NewFlow returns the flow of a pipe that this side opens.
func NewFlow(p priority.Priority) Flow {
	return Flow{queue: priority.Flow[Message]{Priority: p}, state: unsent, tenure: untilFinish}
}

// AcceptedFlow returns the flow of a pipe that the peer opened as id.
func AcceptedFlow(p priority.Priority, id uint64) Flow {
	return Flow{queue: priority.Flow[Message]{Priority: p}, id: id, state: open, tenure: untilFinish}
}

// ID returns the id of the pipe. It is fixed from when the Open departs, which its Departer is
// told. From then on it may be asked for without the lock.
func (f *Flow) ID() uint64 { return f.id }

// Released reports whether the Outbox does not refer to f any more, on which no message but the
// Open was put, by Enter. It may be asked for as ID is.
func (f *Flow) Released() bool { return f.tenure == released }

// remember returns what f remembers of what waits, for something to be added.
func (f *Flow) remember() *backlog {
	if f.backlog == nil {
		f.backlog = new(backlog)
	}
	return f.backlog
}

// apply notes that e has happened. Where that is not allowed, it changes nothing.
func (f *Flow) apply(e flowEvent) {
	if next, ok := f.state.next(e); ok {
		f.state = next
	}
}

// depart gives the pipe its id: its Open departs.
func (f *Flow) depart(id uint64) {
	f.id = id
	f.apply(openDeparts)
}

// stamp returns what the frame of a message says of its pipe.
func (f *Flow) stamp(ttl uint32) stamp {
	return stamp{pipe: f.id, priority: f.queue.Priority, ttl: ttl}
}

// queued notes that n bytes of payload have joined the queue.
func (f *Flow) queued(n int) { f.remember().bytes += n }

// dequeued notes that n bytes of payload have left the queue.
func (f *Flow) dequeued(n int) {
	b := f.remember()
	b.bytes -= n
	if b.room != nil && b.bytes <= backlogLow {
		close(b.room)
		b.room = nil
	}
}

// allDequeued notes that nothing of f is in the queue any more.
func (f *Flow) allDequeued() {
	if f.backlog != nil {
		f.dequeued(f.backlog.bytes)
	}
}

// room returns a channel that is closed when f has room in the queue again, or nil if it has. Alone
// says that nothing of f waits.
func (f *Flow) room() (room <-chan struct{}, alone bool) {
	b := f.backlog
	if b == nil || b.bytes < backlogHigh {
		return nil, f.queue.Len() == 0
	}
	if b.room == nil {
		b.room = make(chan struct{})
	}
	return b.room, false
}

// thin judges a Block once, by its loss rate, and reports whether it is to be dropped. A survivor
// is never judged again. Of the Blocks judged on a pipe, at every point, at most the sum of their
// loss rates over 127 is dropped, and the drops are spread evenly.
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

// droppedAtTail notes that n Blocks were dropped behind all that waits.
func (f *Flow) droppedAtTail(n uint64) { f.remember().tailGap += n }

// droppedAtHead notes that a Block was dropped whose turn to depart it was.
func (f *Flow) droppedAtHead(m *Message) { f.remember().headGap += 1 + m.Skipped }

// tellTailGap lets m, which is put, tell how many Blocks were dropped at the tail.
func (f *Flow) tellTailGap(m *Message) {
	if f.backlog != nil && m.tellsGaps() {
		m.Skipped, f.backlog.tailGap = f.backlog.tailGap, 0
	}
}

// tellHeadGap lets m, which departs, tell how many Blocks were dropped at the head, too.
func (f *Flow) tellHeadGap(m *Message) {
	if f.backlog != nil && m.tellsGaps() {
		m.Skipped += f.backlog.headGap
		f.backlog.headGap = 0
	}
}
