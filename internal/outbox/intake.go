package outbox

import "sync/atomic"

// intake is where Opens arrive without the lock. Callers are many, and once one has had to wait for
// a mutex for long, Go hands the mutex from one to the next, with a switch of goroutines each time.
// The writer takes all that have arrived, in the order in which they came.
type intake struct {
	// noMore once nothing may come. All methods but push need the lock of the Outbox.
	newest atomic.Pointer[Message]
}

// noMore stands where nothing may be pushed any more.
var noMore = new(Message)

// push adds m, and reports whether it is the first since all were taken. It is refused after close.
func (i *intake) push(m *Message) (first, refused bool) {
	for {
		older := i.newest.Load()
		if older == noMore {
			return false, true
		}
		m.older = older
		if i.newest.CompareAndSwap(older, m) {
			return older == nil, false
		}
	}
}

func (i *intake) empty() bool {
	m := i.newest.Load()
	return m == nil || m == noMore
}

// take removes all, and returns the oldest one, from which older leads to those that came later. It
// is for an intake that is not empty, and not closed.
func (i *intake) take() (oldest *Message) { return reversed(i.newest.Swap(nil)) }

// close is take, and lets nothing be pushed any more.
func (i *intake) close() (oldest *Message) { return reversed(i.newest.Swap(noMore)) }

// reversed turns the list around that m is the newest of, and returns the oldest.
func reversed(m *Message) (oldest *Message) {
	for m != nil {
		m, m.older, oldest = m.older, oldest, m
	}
	return oldest
}
