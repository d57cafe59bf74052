package outbox

import (
	"sync"

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

// flowState is the state of a pipe: the messages put so far, and whether the peer may know the
// pipe.
//
//	 unsent ----put end---> unsentHalfClosed ---put close---> unsentClosing
//	   |  \---------------------put close------------------------^   |
//	   |                           |                                 |
//	Open departs              Open departs                      Open departs
//	   |                           |                                 |
//	   v                           v                                 v
//	  open -----put end------> halfClosed ------put close-------> closing
//	      \----------------------put close------------------------^
//
//	 upper row: cancel, finish, Open dropped ---> cancelled
//	 lower row: finish -------------------------> closing
//
// Blocks may be put until the end of their direction was put, and Controls until the Close was put.
// Cancel changes nothing once the Open has departed, because the Close still has to be put.
type flowState uint8

const (
	never            flowState = iota // no flow: nothing is allowed
	unsent                            // the Open has not departed, and may not have been put
	unsentHalfClosed                  // the end of the Blocks waits behind the Open
	unsentClosing                     // the Close waits behind the Open
	open                              // the peer may know the pipe
	halfClosed                        // no Block may follow
	closing                           // nothing may follow: the Close was put, or has arrived
	cancelled                         // nothing may follow; the peer never learns of the pipe
	flowStates
)

// flowEvent is an event of a flow.
type flowEvent uint8

const (
	putOpen flowEvent = iota
	putBlock
	putEnd
	putControl
	putClose
	openDeparts
	openDropped // it expired, or the Outbox was closed
	cancel      // this side cancels the call
	finish      // the peer has closed the pipe
	flowEvents
)

// flowNext contains the allowed transitions.
var flowNext = [flowStates][flowEvents]flowState{
	unsent: {
		putOpen: unsent, putBlock: unsent, putEnd: unsentHalfClosed, putControl: unsent, putClose: unsentClosing,
		openDeparts: open, openDropped: cancelled, cancel: cancelled, finish: cancelled,
	},
	unsentHalfClosed: {
		putControl: unsentHalfClosed, putClose: unsentClosing,
		openDeparts: halfClosed, openDropped: cancelled, cancel: cancelled, finish: cancelled,
	},
	unsentClosing: {
		openDeparts: closing, openDropped: cancelled, cancel: cancelled, finish: cancelled,
	},
	open: {
		putBlock: open, putEnd: halfClosed, putControl: open, putClose: closing,
		cancel: open, finish: closing,
	},
	halfClosed: {
		putControl: halfClosed, putClose: closing,
		cancel: halfClosed, finish: closing,
	},
	closing:   {cancel: closing, finish: closing},     // both came late
	cancelled: {cancel: cancelled, finish: cancelled}, // as here
}

// next returns the state after e. ok is false if e is not allowed in s.
func (s flowState) next(e flowEvent) (_ flowState, ok bool) {
	n := flowNext[s][e]
	return n, n != never
}

// departed reports whether the peer may know the pipe.
func (s flowState) departed() bool { return s == open || s == halfClosed || s == closing }

// Pooled is an object with a Flow that is reused for one call after the other.
type Pooled interface {
	// Flow returns the flow of the present call.
	Flow() *Flow

	// Reset clears all references of the object, and the Flow.
	Reset()
}

// Pool keeps the objects of ended calls for later calls. It is the only way to reuse the memory of
// a Flow: an object enters the Pool when the Outbox does not refer to its Flow any more, regardless
// of how the call has ended. The zero Pool is empty and ready for use. It is safe for concurrent
// use.
type Pool struct{ objects sync.Pool }

// Get returns an object that was put, or nil if there is none.
func (p *Pool) Get() Pooled {
	v, _ := p.objects.Get().(Pooled)
	return v
}

// Put takes v, the object of an ended call: its Departer was called, or Cancel or Finish has
// returned. owner is the Outbox of its Flow, or an object that forwards Finish. v must not be used
// afterwards.
func (p *Pool) Put(owner interface{ Finish(*Flow, Reason) bool }, v Pooled) {
	owner.Finish(v.Flow(), Ended)
	v.Reset()
	p.objects.Put(v)
}
