package outbox

import "sync/atomic"

// intake is a queue for Opens that needs no lock. Many callers put Opens. Once a caller has waited
// for a mutex for long, Go hands the mutex from one goroutine to the next, with a switch each time.
// The writer takes all Opens of the intake, in order of arrival.
type intake struct {
	// noMore after close; all methods but push need the lock of the Outbox
	newest atomic.Pointer[Message]
}

// noMore marks a closed intake.
var noMore = new(Message)

// push adds m, and reports whether the intake was empty. After close it refuses m.
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

// take removes all Opens and returns the oldest. Its older field leads to the later ones. The
// intake must be neither empty nor closed.
func (i *intake) take() (oldest *Message) { return reversed(i.newest.Swap(nil)) }

// close is take, and makes push refuse further Opens.
func (i *intake) close() (oldest *Message) { return reversed(i.newest.Swap(noMore)) }

// reversed reverses the list that begins with m, the newest, and returns the oldest.
func reversed(m *Message) (oldest *Message) {
	for m != nil {
		m, m.older, oldest = m.older, oldest, m
	}
	return oldest
}
