package piping

import "github.com/asterisque-go/asterisque/internal/flow"

// wish is the Ask of the peer, and the Allow that answers it: the next Block may then be larger
// than its window. The room for that Block is reserved.
type wish struct {
	total     uint64      // of the peer's Ask without an answer; 0: none
	claim     flow.Waiter // for the room
	claimed   bool        // the claim waits
	granted   func(bool)  // of the claim; fixed from the first wish on
	allowance allowance
	allowed   uint64 // total of the Allow; 0: none
	debt      int    // bytes held in the room for large Blocks
	sheltered int    // bytes held in a shelter, because no receiver waits any more
}

// allowance is the state of an Allow.
//
//	notAllowed ─grant─> allowDue ─depart─> allowGiven ─block─> allowUsed
//	     ^                 │                   │                   │
//	     └───────────────── take back ─────────┴───────────────────┘
type allowance uint8

const (
	notAllowed allowance = iota
	allowDue             // it waits to be sent
	allowGiven           // it was sent; the peer's next Block uses it
	allowUsed            // that Block has arrived, and may wait in the inbox
)

// none reports whether there is neither an Ask of the peer nor an Allow.
func (w *wish) none() bool { return w.total == 0 && !w.claimed && w.allowance == notAllowed }

// allow answers the peer's Ask with the room of the granted claim.
func (w *wish) allow() {
	w.allowance, w.allowed, w.debt, w.total = allowDue, w.total, w.claim.Bytes, 0
}

// depart is called when the Controls for the peer depart. It reports whether they include an Allow.
func (w *wish) depart() bool {
	if w.allowance != allowDue {
		return false
	}
	w.allowance = allowGiven
	return true
}

// use is called when a Block has arrived. It returns the total of the Allow that the Block uses, or
// 0.
func (w *wish) use() uint64 {
	if w.allowance != allowGiven {
		return 0
	}
	w.allowance = allowUsed
	return w.allowed
}

// withdraw withdraws the claim, if it waits.
func (w *wish) withdraw(room *flow.Room, a *deferred) {
	if !w.claimed {
		return
	}
	waited, claims := room.Withdraw(&w.claim)
	if waited { // otherwise the claim is about to be granted
		w.claimed = false
	}
	a.grant(claims)
}

// disallow takes an Allow back, and releases its room.
func (w *wish) disallow(room *flow.Room, a *deferred) {
	w.vacate(room, a)
	w.allowance, w.allowed = notAllowed, 0
}

// recall takes back an Allow that has not departed. The peer's Ask remains unanswered.
func (w *wish) recall(room *flow.Room, a *deferred) {
	total := w.allowed
	w.disallow(room, a)
	w.total = total
}

// vacate releases the room of an Allow.
func (w *wish) vacate(room *flow.Room, a *deferred) {
	a.grant(room.Disallow(w.debt))
	a.shelter += w.sheltered
	w.debt, w.sheltered = 0, 0
}

// shelter releases the room of an Allow, which has a shelter instead.
func (w *wish) shelter(room *flow.Room, a *deferred) {
	a.grant(room.Disallow(w.debt))
	w.sheltered, w.debt = w.debt, 0
}

// leave transfers the room of an Allow to l, which contains the allowed Block.
func (w *wish) leave(l *leftover) {
	if w.debt > 0 { // a receiver that has waited for the Block is about to take it
		l.debt, w.debt = w.debt, 0
	} else {
		l.shelter, w.sheltered = w.sheltered, 0
	}
}
