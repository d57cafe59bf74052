package outbox

import (
	"github.com/asterisque-go/asterisque/priority"
)

const (
	// A pipe with backlogHigh queued bytes should wait until no more than backlogLow are left. So
	// pipes that send as fast as they can share the queue, and the limits of the session, evenly.
	backlogHigh = 64 << 10
	backlogLow  = 32 << 10
)

// Flow is the place of one pipe in an Outbox. It is guarded by the lock of its Outbox.
//
// From the first message on, the Outbox owns the Flow and the Departer of its Open: the queue
// refers to both while a message waits, and a message in parts waits until its last part is sent.
// [Outbox.Finish] returns the memory to its owner. Until then the memory must not be used for
// another Flow; [Pool] ensures that.
type Flow struct {
	queue priority.Flow[Message]
	id    uint64 // zero until the Open has departed
	state flowState
	debt  uint8 // of the loss rate; see thin
	// tenure is written by Enter and, for the last time, before the Departer is called. After that
	// call it may be read without the lock.
	reference flowReference
	sent      uint32 // the cost of the Blocks that have departed, the low bits
	// nil until needed: most pipes are short calls, which it would enlarge
	backlog *backlog
}

// flowReference is how long the Outbox refers to a flow.
type flowReference uint8

const (
	untilFinish flowReference = iota // messages of any kind may wait
	// the Open is the only message, and waits: see Enter
	untilOpenLeaves
	released // that Open was sent whole, or dropped: nothing refers to the flow
	parted   // the Open is being sent, or was sent, in parts
)

// release records that an Open was sent whole, or was dropped before any part of it was sent.
func (f *Flow) release() {
	if f.reference == untilOpenLeaves {
		f.reference = released
	}
}

// backlog is the state of a flow with queued or dropped messages.
type backlog struct {
	// Blocks dropped at the head: after the Block sent last, and before the queued ones
	headGap    uint64
	tailGap    uint64        // Blocks dropped at the tail: after all queued ones
	bytes      int           // payload in the queue
	room       chan struct{} // closed when bytes is small again; nil while no caller waits
	fragmenter *fragmenter   // of the message at the head; nil unless a part of it has been sent
}

// NewFlow returns the flow of a pipe that this side opens.
func NewFlow(p priority.Priority) Flow {
	return Flow{queue: priority.Flow[Message]{Priority: p}, state: unsent, reference: untilFinish}
}

// AcceptedFlow returns the flow of a pipe that the peer opened as id.
func AcceptedFlow(p priority.Priority, id uint64) Flow {
	return Flow{queue: priority.Flow[Message]{Priority: p}, id: id, state: open, reference: untilFinish}
}

// ID returns the id of the pipe. It is fixed when the Open departs. After the Depart of its
// Departer, ID may be called without the lock.
func (f *Flow) ID() uint64 { return f.id }

// Released reports whether the Outbox has stopped referring to f, a flow with no message but an
// Open put by Enter. Released may be called whenever ID may be.
func (f *Flow) Released() bool { return f.reference == released }

// remember returns the backlog of f, creating it if necessary.
func (f *Flow) remember() *backlog {
	if f.backlog == nil {
		f.backlog = new(backlog)
	}
	return f.backlog
}

// apply changes the state by e. An event that is not allowed has no effect.
func (f *Flow) apply(e flowEvent) {
	if next, ok := f.state.next(e); ok {
		f.state = next
	}
}

// depart gives the pipe its id when its Open departs.
func (f *Flow) depart(id uint64) {
	f.id = id
	f.apply(openDeparts)
}

// stamp returns the fields of a frame that depend on its pipe.
func (f *Flow) stamp(ttl uint32) frameStamp {
	return frameStamp{pipe: f.id, priority: f.queue.Priority, ttl: ttl}
}

// queued records that n bytes of payload have joined the queue.
func (f *Flow) queued(n int) { f.remember().bytes += n }

// dequeued records that n bytes of payload have left the queue.
func (f *Flow) dequeued(n int) {
	b := f.remember()
	b.bytes -= n
	if b.room != nil && b.bytes <= backlogLow {
		close(b.room)
		b.room = nil
	}
}

// allDequeued records that no message of f is queued any more.
func (f *Flow) allDequeued() {
	if f.backlog != nil {
		f.dequeued(f.backlog.bytes)
	}
}

// room returns a channel that is closed when f has room in the queue again, or nil if there is
// room.
func (f *Flow) room() <-chan struct{} {
	b := f.backlog
	if b == nil || b.bytes < backlogHigh {
		return nil
	}
	if b.room == nil {
		b.room = make(chan struct{})
	}
	return b.room
}
