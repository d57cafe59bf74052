package piping

import "github.com/asterisque-go/asterisque/internal/flow"

// deferred is the work to do after the lock of an End is released.
type deferred struct {
	claims          []*flow.Waiter // that were granted
	announce        bool           // there are Controls for the peer
	messages, bytes int            // taken by the application
	unused          int            // reserved bytes of the Ledger to release
	// bytes of a Block that move to the reserved ones, and back: they count either there or as
	// those of a message, which would stop the reader though the peer was granted room
	moved, reserved int
	abort           bool        // there is no room for a Block that the peer was allowed
	show            bool        // interceptors are to see the outcome
	watchLeft       bool        // the call has ended with untaken Blocks
	forgets         func() bool // stops waiting for the end of the context of Open
}

// grant adds the granted claims of other Ends.
func (a *deferred) grant(claims []*flow.Waiter) {
	if len(claims) > 0 {
		a.claims = append(a.claims, claims...)
	}
}

// do does everything but the abort. It is called without a lock.
func (a *deferred) do(t *Terms, port Port) {
	if n := a.reserved + a.unused; n > 0 {
		t.Ledger.Reserve(-n)
	}
	if n := a.moved - a.reserved; n != 0 {
		t.Ledger.Taken(0, n)
	}
	if a.messages > 0 || a.bytes > 0 {
		t.Ledger.Taken(a.messages, a.bytes)
	}
	if a.announce {
		port.Announce()
	}
	flow.Grant(a.claims)
}
