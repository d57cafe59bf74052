package piping

import "github.com/asterisque-go/asterisque/internal/flow"

// wished returns the total of the peer's Ask, or 0 if there is none.
func (r *receiver) wished() uint64 {
	if r.extras == nil {
		return 0
	}
	return r.extras.wish.total
}

// listens reports whether the application waits for a Block.
func (r *receiver) listens() bool { return r.waiting > 0 && !r.paused }

// answer answers the peer's Ask if possible now.
func (r *receiver) answer(s endState, t *Terms, a *deferred) {
	if r.wished() == 0 || r.inbox.Len() > 0 || !s.wants() {
		return
	}
	w := &r.extras.wish
	listens := r.listens()
	if need := w.total - r.taken; listens && need > r.hold.Bytes() && need <= t.largest() {
		r.grow(t, min(max(need, 2*r.hold.Bytes()), t.largest()), a)
	}
	if r.taken+r.hold.Bytes() >= w.total {
		r.raise(t, w.total, a)
		return
	}
	bytes := w.total - r.taken - r.hold.Bytes()
	if !listens || w.claimed || w.allowance != notAllowed || bytes > uint64(t.Room.Plan().Large) {
		// more than there ever will be
		return
	}
	w.claim = flow.Waiter{Priority: r.priority, Bytes: int(bytes), Granted: w.granted}
	if w.claimed = !t.Room.Allow(&w.claim); !w.claimed {
		r.allow(a)
	}
}

// allow answers the peer's Ask with the room of the granted claim.
func (r *receiver) allow(a *deferred) {
	r.extras.wish.allow()
	r.announce(announced, a)
}

// claimed is called when the claim is granted.
func (r *receiver) claimed(s endState, t *Terms, a *deferred) {
	w := &r.extras.wish
	w.claimed = false
	reach := r.taken + r.hold.Bytes() + uint64(w.claim.Bytes)
	if w.total > 0 && r.listens() && r.inbox.Len() == 0 && reach >= w.total {
		r.allow(a)
		return
	}
	a.grant(t.Room.Disallow(w.claim.Bytes))
	r.answer(s, t, a)
}

// forget drops the peer's Ask, and takes back an Allow, unless its Block waits in the inbox.
func (r *receiver) forget(s endState, t *Terms, a *deferred) {
	if r.extras == nil {
		return
	}
	w := &r.extras.wish
	w.total = 0
	w.withdraw(t.Room, a)
	switch {
	case w.allowance == notAllowed:
	case s&(over|stoppedHere) == stoppedHere: // the allowed Block may arrive, and needs no room
		w.vacate(t.Room, a)
	case w.allowance != allowUsed || r.inbox.Len() == 0 || s.over():
		w.disallow(t.Room, a)
	}
}

// move is called when a receiver has stopped waiting. If no receiver waits for the allowed Block
// any more, move transfers the Block to spare room, since it must not block the large Blocks of
// other pipes. It returns the bytes for which there is no spare room.
func (r *receiver) move(s endState, t *Terms, a *deferred) (homeless int) {
	if r.waiting > 0 || r.extras == nil || !r.windowed() || s.over() {
		return 0
	}
	w := &r.extras.wish
	w.withdraw(t.Room, a)
	switch {
	case w.allowance == notAllowed || w.debt == 0:
	case w.allowance == allowDue: // the Allow has not been sent
		w.recall(t.Room, a)
	case t.Room.Fit(&r.hold, r.hold.Bytes()+uint64(w.debt)):
		r.include(t, a)
	default:
		return w.debt
	}
	return 0
}

// include makes the allowed bytes part of the window, which has grown by as much.
func (r *receiver) include(t *Terms, a *deferred) {
	w := &r.extras.wish
	a.grant(t.Room.Disallow(w.debt))
	w.debt = 0
	if w.allowance != allowUsed {
		r.raise(t, w.allowed, a)
		w.allowance, w.allowed = notAllowed, 0
	}
}

// house is called when homeless bytes of an allowed Block have got a shelter, or have not. It
// reports whether there is no room for them at all.
func (r *receiver) house(s endState, t *Terms, homeless int, sheltered bool, a *deferred) (nowhere bool) {
	w := &r.extras.wish
	switch {
	case r.waiting > 0 || w.debt != homeless || s.over(): // they need no shelter any more
		if sheltered {
			a.shelter = homeless
		}
	case sheltered:
		w.shelter(t.Room, a)
	default:
		return true
	}
	return false
}
