package asterisque

import "github.com/asterisque-go/asterisque/priority"

// task is what is kept of a call of the peer to decide when it runs. It is a part of the call, so
// that it costs no object of its own.
type task struct {
	size     uint32 // bytes of its parameters; fixed, but for a repetition that waits
	becomes  rough  // what they become when they are decoded; fixed once it waits
	priority priority.Priority
	nested   bool // it is made within a call of this side; fixed, as the next two
	blocks   bool // it carries Blocks
	windowed bool // its Open has paid for the first of them
	byReader bool // the reader runs it, and answers it: it is inline; fixed, and without Blocks
	counted  bool // its Open was counted before it was known where the call belongs

	// its handler runs: if the goroutine ends, the call is to be answered; belongs to that
	// goroutine
	serving bool

	state taskState // guarded by the lock of the dispatcher, as what follows
	gated bool      // it holds a place at the gate of its function
	urged bool      // a call within another one waits for its end
}

// urgentLocked reports whether a call within another one waits for t, or t is one itself: it waits
// for no worker.
func (t *task) urgentLocked() bool { return t.nested || t.urged }

// apartLocked reports whether t runs in one of the places for calls that only wait.
func (t *task) apartLocked() bool { return t.state == taskLent && !t.urgentLocked() }

// moveLocked lets e happen to t, or reports false if it cannot happen now.
func (t *task) moveLocked(e taskEvent) (ok bool) {
	next, ok := t.state.next(e)
	if ok {
		t.state = next
	}
	return ok
}

// A call has the last eighth of the room for running calls if its parameters have so many bytes at
// most, and become so many: large ones that sleep do not stop small ones.
const (
	smallParams = 4 << 10
	smallValue  = 16 << 10
)

func (t *task) small() bool { return t.size <= smallParams && t.becomes.bytes() <= smallValue }

// taskState says how far a call of the peer has got.
//
//	                        ┌──────────── taken ◀───────────┐
//	                        ▼                               │
//	arriving ─ accepted ─▶ forKey ─ to… ─▶ forWorker, forRoom, forGate
//	   │ │                  │                               │
//	   │ └─ begun inline ─┐ └─────────── begun ─────────────┤
//	   │                  ▼                                 │
//	   │               running                              │
//	   │                  │ returned                        │
//	   └── withdrawn ──▶ over ◀──────── withdrawn ──────────┘
//
// Whoever lends a worker to a call takes it out of no queue: it runs, or waits for its gate, and
// the queue drops it later.
type taskState uint8

const (
	taskArriving taskState = iota // the reader has yet to find out where it belongs
	// it waits for its turn, or is on its way from one queue to the next
	taskForKey
	taskForWorker // it waits for a worker
	taskForRoom   // for room for its parameters
	taskForGate   // for a place at the gate of its function
	taskRunning   // a worker has taken it, or the reader runs it
	taskLent      // a worker beyond the limit runs it, which was lent to it
	taskOver      // its handler has returned, or it was given up while it waited
)

// taskEvent is what may happen to a task.
type taskEvent uint8

const (
	taskAccepted    taskEvent = iota // the dispatcher has taken it over
	taskToWorker                     // it is put into the queue for workers
	taskToRoom                       // into that for room
	taskToGate                       // into that for its gate
	taskTaken                        // it is taken out of a queue
	taskBegun                        // a worker is about to run it
	taskBegunLent                    // a worker that is lent to it is
	taskBegunInline                  // the reader is
	taskReturned                     // its handler has returned
	taskWithdrawn                    // it is given up before it has begun
)

// next returns the state after e, or ok == false if e cannot happen in s.
func (s taskState) next(e taskEvent) (_ taskState, ok bool) {
	switch e {
	case taskAccepted:
		return taskForKey, s == taskArriving
	case taskToWorker:
		return taskForWorker, s == taskForKey
	case taskToRoom:
		return taskForRoom, s == taskForKey
	case taskToGate:
		return taskForGate, s.waits() && s != taskForGate
	case taskTaken:
		return taskForKey, s == taskForWorker || s == taskForRoom || s == taskForGate
	case taskBegun:
		return taskRunning, s == taskForKey
	case taskBegunLent:
		return taskLent, s.waits()
	case taskBegunInline:
		return taskRunning, s == taskArriving
	case taskReturned:
		return taskOver, s == taskRunning || s == taskLent
	case taskWithdrawn:
		return taskOver, s < taskRunning
	}
	return s, false
}

// waits reports whether the call is here and has not begun.
func (s taskState) waits() bool { return s > taskArriving && s < taskRunning }

// waiter is a call that waits for a worker, as those see it for whom it waits.
type waiter interface {
	// queue lets it wait for a worker: its turn has come as far as its key or gate goes.
	queue()

	// lend lends a worker to it: a call within another one waits for its end.
	lend()
}
