package piping

import "github.com/asterisque-go/asterisque/internal/flow"

// arrivingBlock is a Block of the peer that arrives in parts, and the room for the bytes of it that
// its window does not cover: the debt.
type arrivingBlock struct {
	underway   bool // parts of it are missing
	whole, got int  // bytes of its payload, and of these the ones that have arrived

	claim   flow.Waiter  // for the debt
	claimed bool         // the claim waits
	granted func(bool)   // of the claim; fixed from the first Block on
	idle    *flow.Waiter // the room for large Blocks may call End.evicted; nil if not

	// bytes held for the Block, underway or first in the inbox
	debt     int        // in the class source of the Budget
	source   flow.Class // Large, which must not wait for an application, or Elastic
	reserved int        // in the room for running calls, because no receiver waits any more
}

// cost returns the cost of the arrived parts.
func (b *arrivingBlock) cost(t *Terms) uint64 {
	if !b.underway {
		return 0
	}
	return t.cost(b.got)
}

// withdraw withdraws the claim, if it waits.
func (b *arrivingBlock) withdraw(budget *flow.Budget, a *deferred) {
	if !b.claimed {
		return
	}
	waited, claims := budget.Withdraw(&b.claim)
	if waited { // otherwise the claim is about to be granted
		b.claimed = false
	}
	a.grant(claims)
}

// vacate releases the debt.
func (b *arrivingBlock) vacate(budget *flow.Budget, a *deferred) {
	if b.idle != nil {
		budget.Withdraw(b.idle)
		b.idle = nil
	}
	a.grant(budget.Release(b.source, b.debt))
	a.reserved += b.reserved
	b.debt, b.reserved = 0, 0
}

// reserve moves the debt into the room for running calls, which has been reserved.
func (b *arrivingBlock) reserve(budget *flow.Budget, a *deferred) {
	a.grant(budget.Release(b.source, b.debt))
	a.moved += b.debt
	b.reserved, b.debt = b.debt, 0
}

// arriving returns the Block that arrives in parts, or nil if there is none.
func (r *receiver) arriving() *arrivingBlock {
	if r.extras == nil || !r.extras.arriving.underway {
		return nil
	}
	return &r.extras.arriving
}

// needed returns the total up to the end of the Block that arrives, if the peer has to wait for
// credit to finish it, and 0 otherwise.
func (r *receiver) needed(t *Terms) uint64 {
	b := r.arriving()
	if b == nil {
		return 0
	}
	if end := r.received(t) + uint64(b.whole-b.got); end > r.granted {
		return end
	}
	return 0
}

// listens reports whether the application waits for a Block.
func (r *receiver) listens() bool { return r.waiting > 0 && !r.paused }

// grantRest grants the credit for the rest of the Block that arrives, if possible now. An
// application that does not wait for the Block holds no room for it besides its window.
func (r *receiver) grantRest(s endState, t *Terms, a *deferred) {
	end := r.needed(t)
	if end == 0 || r.inbox.Len() > 0 || !s.wants() || r.hold.Base == 0 {
		return
	}
	b := r.arriving()
	listens := r.listens()
	if need := end - r.taken; listens && need > r.hold.Bytes() && need <= t.largest() {
		r.grow(t, min(max(need, 2*r.hold.Bytes()), t.largest()), a)
	}
	if r.taken+r.hold.Bytes() >= end {
		r.raise(t, end, a)
		return
	}
	bytes := end - r.taken - r.hold.Bytes()
	if !listens || b.claimed || b.debt > 0 || bytes > uint64(t.Budget.Plan().Large) {
		return // the last: more than there ever will be
	}
	b.claim = flow.Waiter{Priority: r.priority, Bytes: int(bytes), Granted: b.granted}
	if b.claimed = !t.Budget.Acquire(flow.Large, &b.claim); b.claimed {
		a.grant(t.Budget.Evict())
	} else {
		r.grantUpTo(end, a)
	}
}

// grantUpTo grants credit up to end. The claim has got the room that the window does not cover.
func (r *receiver) grantUpTo(end uint64, a *deferred) {
	b := &r.extras.arriving
	b.debt, b.source = b.claim.Bytes, b.claim.Source()
	r.granted = end
	r.announce(creditDue, a)
}

// claimed is called when the claim is granted. Its room may not be needed any more.
func (r *receiver) claimed(s endState, t *Terms, a *deferred) {
	b := &r.extras.arriving
	b.claimed = false
	end := r.needed(t)
	if end > 0 && r.listens() && r.inbox.Len() == 0 && r.taken+r.hold.Bytes()+uint64(b.claim.Bytes) >= end {
		r.grantUpTo(end, a)
		return
	}
	a.grant(t.Budget.Release(b.claim.Source(), b.claim.Bytes))
	r.grantRest(s, t, a)
}

// forget ends the Block that arrives, and releases its debt, unless the complete Block waits in the
// inbox.
func (r *receiver) forget(s endState, t *Terms, a *deferred) {
	if r.extras == nil {
		return
	}
	b := &r.extras.arriving
	b.withdraw(t.Budget, a)
	if b.underway || r.inbox.Len() == 0 {
		b.vacate(t.Budget, a)
	}
	b.underway = false
}

// abandon is called when the peer has abandoned the Block that arrives. The Block counts in full,
// as it does for the peer.
func (r *receiver) abandon(s endState, t *Terms, a *deferred) {
	b := r.arriving()
	if b == nil {
		return
	}
	b.underway = false
	r.taken += t.cost(b.whole)
	if !r.windowed() {
		return
	}
	b.withdraw(t.Budget, a)
	b.vacate(t.Budget, a)
	if s.wants() && r.hold.Base > 0 { // otherwise the call waits for a worker
		r.credit(s, t, r.inbox.Len() == 0, a)
	}
}

// takes reports whether a receiver is about to take the first Block of the inbox.
func (r *receiver) takes(s endState) bool { return r.waiting > 0 && (!r.paused || s.over()) }

// moveDebt is called when no receiver waits any more for the Block that has a debt. Its room must
// not block the large Blocks of other pipes, so the debt moves to the elastic room. moveDebt
// returns the bytes of a complete Block for which there is no elastic room.
func (r *receiver) moveDebt(s endState, t *Terms, a *deferred) (unplaced int) {
	if r.extras == nil || !r.windowed() || r.takes(s) {
		return 0
	}
	b := &r.extras.arriving
	switch { // a claim keeps its turn: the receiver may come back
	case b.debt == 0 || b.source == flow.Elastic:
	default:
		ok, granted := t.Budget.Move(b.debt)
		if a.grant(granted); ok {
			b.source = flow.Elastic
		} else if !b.underway {
			return b.debt
		}
	}
	return 0
}

// placeDebt is called when room for running calls has been reserved for unplaced bytes of a Block,
// or there was none. Without any other room the Block stays until another one needs its room, and
// then its pipe ends: placeDebt reports whether one does.
func (r *receiver) placeDebt(s endState, t *Terms, unplaced int, reserved bool, evicted func(bool), a *deferred) (nowhere bool) {
	b := &r.extras.arriving
	switch {
	case r.takes(s) || b.debt != unplaced || b.source != flow.Large: // no other room is needed
		if reserved {
			a.unused = unplaced
		}
	case reserved:
		b.reserve(t.Budget, a)
	case b.idle == nil:
		b.idle = &flow.Waiter{Granted: evicted}
		if !t.Budget.Idle(b.idle) {
			b.idle = nil
			return true
		}
	}
	return false
}
