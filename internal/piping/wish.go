package piping

import "github.com/asterisque-go/asterisque/limits"

// wish is what the peer has asked for, and what it was allowed: its next Block may then be larger
// than its window. The room for that is set aside.
type wish struct {
	total     uint64       // of the peer's Ask that has to be answered; 0: none
	claim     limits.Claim // in the line for room
	claimed   bool         // it waits there
	granted   func()       // of the claim; fixed once there was a wish
	allowance allowance
	allowed   uint64 // total of the Allow; 0: none
	debt      int    // what it holds of the room for large Blocks
	sheltered int    // or elsewhere, because nobody waits for it any more
}

// allowance is how far an Allow has got.
//
//	notAllowed ─grant─> allowDue ─depart─> allowGiven ─block─> allowUsed
//	     ^                 │                   │                   │
//	     └───────────────── take back ─────────┴───────────────────┘
type allowance uint8

const (
	notAllowed allowance = iota
	allowDue             // the peer has to be told
	allowGiven           // it was told; its next Block uses the Allow up
	allowUsed            // that Block has come, and may wait to be taken
)

// none reports whether the peer has asked for nothing, and was allowed nothing.
func (w *wish) none() bool { return w.total == 0 && !w.claimed && w.allowance == notAllowed }

// allow answers the peer's Ask with what the claim has got.
func (w *wish) allow() {
	w.allowance, w.allowed, w.debt, w.total = allowDue, w.total, w.claim.Bytes, 0
}

// depart is called when the peer is told what it has to be told. It reports whether an Allow is
// part of that.
func (w *wish) depart() bool {
	if w.allowance != allowDue {
		return false
	}
	w.allowance = allowGiven
	return true
}

// use is called when a Block has come. It returns up to which total an Allow has let it come, or 0.
func (w *wish) use() uint64 {
	if w.allowance != allowGiven {
		return 0
	}
	w.allowance = allowUsed
	return w.allowed
}

// withdraw takes the claim out of the line, if it is there.
func (w *wish) withdraw(room *limits.Room, a *after) {
	if !w.claimed {
		return
	}
	waited, claims := room.Withdraw(&w.claim)
	if waited { // otherwise the claim is about to be granted
		w.claimed = false
	}
	a.grant(claims)
}

// disallow takes an Allow back, and its room.
func (w *wish) disallow(room *limits.Room, a *after) {
	w.vacate(room, a)
	w.allowance, w.allowed = notAllowed, 0
}

// recall takes back an Allow that has not departed: the peer's Ask stands.
func (w *wish) recall(room *limits.Room, a *after) {
	total := w.allowed
	w.disallow(room, a)
	w.total = total
}

// vacate gives back the room of an Allow.
func (w *wish) vacate(room *limits.Room, a *after) {
	a.grant(room.Disallow(w.debt))
	a.shelter += w.sheltered
	w.debt, w.sheltered = 0, 0
}

// shelter gives back the room of an Allow, for which there is a shelter.
func (w *wish) shelter(room *limits.Room, a *after) {
	a.grant(room.Disallow(w.debt))
	w.sheltered, w.debt = w.debt, 0
}

// leave gives the room of an Allow to what is left of a call, whose Block it was for.
func (w *wish) leave(l *leftover) {
	if w.debt > 0 { // the receiver that has waited for the Block is about to take it
		l.debt, w.debt = w.debt, 0
	} else {
		l.shelter, w.sheltered = w.sheltered, 0
	}
}
