package dispatch

import (
	"math/bits"

	"github.com/asterisque-go/asterisque/priority"
)

// Task is the dispatcher's state of a call of the peer. It is a part of the call, so that it costs
// no object of its own.
type Task struct {
	Size        uint32 // bytes of its parameters; fixed, except for a waiting repetition
	DecodedSize Size16 // decoded size of its parameters; fixed once it waits
	Priority    priority.Priority
	Nested      bool // nested within a call of this side; fixed, as the next two
	Blocks      bool // carries Blocks
	Windowed    bool // its Open has paid for the first Blocks
	ByReader    bool // run and answered by the reader: inline, without Blocks; fixed
	Counted     bool // its Open was counted before Put

	// the handler runs: if the goroutine ends, the call is to be answered; owned by that goroutine
	Serving bool

	state   State // guarded by the lock of the dispatcher, as below
	limited bool  // holds a place at the concurrency limit of its function
	urged   bool  // a nested call waits for its end
}

// urgentLocked reports whether t is a nested call, or a nested call waits for it: t does not wait
// for a worker.
func (t *Task) urgentLocked() bool { return t.Nested || t.urged }

// apartLocked reports whether t has one of the places for calls that only wait.
func (t *Task) apartLocked() bool { return t.state == lent && !t.urgentLocked() }

// moveLocked applies e, or returns false if e is impossible now.
func (t *Task) moveLocked(e event) (ok bool) {
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

func (t *Task) small() bool { return t.Size <= smallParams && t.DecodedSize.Bytes() <= smallValue }

// State is the progress of a call of the peer.
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
// A call to which a worker is lent is in the state lent rather than running. It stays in its queue,
// which drops it later.
type State uint8

const (
	Arriving State = iota // not yet taken over by the dispatcher
	// waits for its turn, or is on its way from one queue to the next
	forKey
	forWorker // waits for a worker
	forRoom   // waits for memory for its parameters
	forLimit  // waits for a place at the concurrency limit of its function
	running   // a worker has taken it, or the reader runs it
	lent      // a worker beyond the limit runs it, lent to it
	over      // its handler has returned, or it was canceled while it waited
)

// event is an event of a task.
type event uint8

const (
	taskAccepted    event = iota // the dispatcher has taken it over
	taskToWorker                 // put into the queue for workers
	taskToRoom                   // into the queue for memory
	taskToLimit                  // into the queue for its concurrency limit
	taskTaken                    // removed from a queue
	taskBegun                    // a worker is about to run it
	taskBegunLent                // a lent worker is about to run it
	taskBegunInline              // the reader is about to run it
	taskReturned                 // its handler has returned
	taskWithdrawn                // canceled before it has begun
)

// next returns the state after e. It returns ok == false for an e that is impossible in s.
func (s State) next(e event) (_ State, ok bool) {
	switch e {
	case taskAccepted:
		return forKey, s == Arriving
	case taskToWorker:
		return forWorker, s == forKey
	case taskToRoom:
		return forRoom, s == forKey
	case taskToLimit:
		return forLimit, s.Waits() && s != forLimit
	case taskTaken:
		return forKey, s == forWorker || s == forRoom || s == forLimit
	case taskBegun:
		return running, s == forKey
	case taskBegunLent:
		return lent, s.Waits()
	case taskBegunInline:
		return running, s == Arriving
	case taskReturned:
		return over, s == running || s == lent
	case taskWithdrawn:
		return over, s < running
	}
	return s, false
}

// Waits reports whether the call waits at the dispatcher.
func (s State) Waits() bool { return s > Arriving && s < running }

// Size16 is a number of bytes, rounded up by at most a thousandth: eleven bits, and a shift.
// It takes two bytes.
type Size16 uint16

const roughBits = 11

// Round16 rounds n bytes up. Less than 0 counts as 0, and more than 2^30 as 2^30.
func Round16(n int) Size16 {
	n = min(max(n, 0), 1<<30)
	shift := max(0, bits.Len(uint(n))-roughBits)
	top := (n + 1<<shift - 1) >> shift
	if top == 1<<roughBits {
		top, shift = top/2, shift+1
	}
	return Size16(shift<<roughBits | top)
}

// Bytes returns the number of bytes.
func (r Size16) Bytes() int { return int(r&(1<<roughBits-1)) << (r >> roughBits) }
