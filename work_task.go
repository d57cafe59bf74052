package asterisque

import "github.com/asterisque-go/asterisque/priority"

// task is the dispatcher's state of a call of the peer. It is a part of the call, so that it costs
// no object of its own.
type task struct {
	size        uint32 // bytes of its parameters; fixed, except for a waiting repetition
	decodedSize size16 // decoded size of its parameters; fixed once it waits
	priority    priority.Priority
	nested      bool // nested within a call of this side; fixed, as the next two
	blocks      bool // carries Blocks
	windowed    bool // its Open has paid for the first Blocks
	byReader    bool // run and answered by the reader: inline, without Blocks; fixed
	counted     bool // its Open was counted before put

	// the handler runs: if the goroutine ends, the call is to be answered; owned by that goroutine
	serving bool

	state   taskState // guarded by the lock of the dispatcher, as below
	limited bool      // holds a place at the concurrency limit of its function
	urged   bool      // a nested call waits for its end
}

// urgentLocked reports whether t is a nested call, or a nested call waits for it: t does not wait
// for a worker.
func (t *task) urgentLocked() bool { return t.nested || t.urged }

// apartLocked reports whether t has one of the places for calls that only wait.
func (t *task) apartLocked() bool { return t.state == taskLent && !t.urgentLocked() }

// moveLocked applies e, or returns false if e is impossible now.
func (t *task) moveLocked(e taskEvent) (ok bool) {
	next, ok := t.state.next(e)
	if ok {
		t.state = next
	}
	return ok
}

// A call may use the last eighth of the budget for running calls if its parameters, and their
// decoded form, have at most these sizes: large calls that sleep do not block small ones.
const (
	smallParams = 4 << 10
	smallValue  = 16 << 10
)

func (t *task) small() bool { return t.size <= smallParams && t.decodedSize.bytes() <= smallValue }

// taskState is the progress of a call of the peer.
//
//	                        ┌──────────── taken ◀───────────┐
//	                        ▼                               │
//	arriving ─ accepted ─▶ forKey ─ to… ─▶ forWorker, forRoom, forLimit
//	   │ │                  │                               │
//	   │ └─ begun inline ─┐ └─────────── begun ─────────────┤
//	   │                  ▼                                 │
//	   │               running                              │
//	   │                  │ returned                        │
//	   └── withdrawn ──▶ over ◀──────── withdrawn ──────────┘
//
// Lending a worker to a call does not remove it from a queue: the call runs, or waits for its
// concurrency limit, and the queue drops it later.
type taskState uint8

const (
	taskArriving taskState = iota // not yet taken over by the dispatcher
	// waits for its turn, or is on its way from one queue to the next
	taskForKey
	taskForWorker // waits for a worker
	taskForRoom   // waits for memory for its parameters
	taskForLimit  // waits for a place at the concurrency limit of its function
	taskRunning   // a worker has taken it, or the reader runs it
	taskLent      // a worker beyond the limit runs it, lent to it
	taskOver      // its handler has returned, or it was canceled while it waited
)

// taskEvent is an event of a task.
type taskEvent uint8

const (
	taskAccepted    taskEvent = iota // the dispatcher has taken it over
	taskToWorker                     // put into the queue for workers
	taskToRoom                       // into the queue for memory
	taskToLimit                      // into the queue for its concurrency limit
	taskTaken                        // removed from a queue
	taskBegun                        // a worker is about to run it
	taskBegunLent                    // a lent worker is about to run it
	taskBegunInline                  // the reader is about to run it
	taskReturned                     // its handler has returned
	taskWithdrawn                    // canceled before it has begun
)

// next returns the state after e. It returns ok == false for an e that is impossible in s.
func (s taskState) next(e taskEvent) (_ taskState, ok bool) {
	switch e {
	case taskAccepted:
		return taskForKey, s == taskArriving
	case taskToWorker:
		return taskForWorker, s == taskForKey
	case taskToRoom:
		return taskForRoom, s == taskForKey
	case taskToLimit:
		return taskForLimit, s.waits() && s != taskForLimit
	case taskTaken:
		return taskForKey, s == taskForWorker || s == taskForRoom || s == taskForLimit
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

// waits reports whether the call waits at the dispatcher.
func (s taskState) waits() bool { return s > taskArriving && s < taskRunning }
