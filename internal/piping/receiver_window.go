package piping

import "github.com/asterisque-go/asterisque/internal/flow"

// mostOwed is the largest part of a window, in bytes, that is taken before credit is sent. Over a
// long path the rest of the window is in flight.
const mostOwed = 512 << 10

// windowed reports whether the peer has a window.
func (r *receiver) windowed() bool { return r.granted != Unlimited }

// announce informs the port, once, that there is something to send to the peer.
func (r *receiver) announce(n peerNotice, a *deferred) {
	a.announce = a.announce || r.notice == noNews
	r.notice = max(r.notice, n)
}

// tell is called when the Controls of this receiver depart. It reports whether they include a
// Credit.
func (r *receiver) tell() (credit bool) {
	credit, r.notice = r.notice == creditDue, noNews
	return credit
}

// raise grants the whole window. If the window has room for some of the largest Blocks that come,
// raise grants only the cost of these, since a sender that fills its credit would send a small
// Block after the large ones. It grants at least least, if that is not 0 and fits.
func (r *receiver) raise(t *Terms, least uint64, a *deferred) {
	received, total := r.received(t), r.taken+r.hold.Bytes()
	if rest := uint64(max(t.Early, 1)) - 1; r.largest > 0 && total > received+rest {
		if whole := (total - received - rest) / uint64(r.largest); whole > 0 {
			total = max(received+rest+whole*uint64(r.largest), min(least, total))
		}
	}
	if total <= r.granted {
		return
	}
	r.granted = total
	r.announce(creditDue, a)
	if r.extras != nil && r.needed(t) == 0 {
		r.extras.arriving.withdraw(t.Budget, a)
	}
}

// grow enlarges the window to want, or shrinks it if other windows need the room, but not below the
// granted credit.
func (r *receiver) grow(t *Terms, want uint64, a *deferred) {
	a.grant(t.Budget.Grow(&r.hold, want, r.used(t)))
}

// took processes the taking of a Block of the given cost. It resizes the window, and sends credit
// when half of the window is owed, when the peer waits for it, or when little is left.
func (r *receiver) took(s endState, t *Terms, cost uint64, a *deferred) {
	r.taken += cost
	if !r.windowed() {
		return
	}
	a.grant(t.Budget.Took(&r.hold))
	// a complete Block with a debt is the first one in the inbox
	if r.extras != nil && !r.extras.arriving.underway {
		r.extras.arriving.vacate(t.Budget, a)
	}
	drained := r.inbox.Len() == 0
	if s&(endedThere|over) != 0 {
		if drained {
			a.grant(t.Budget.Shrink(&r.hold, 0))
		}
		return
	}
	r.credit(s, t, drained, a)
}

// credit enlarges the window and sends credit when they are due. drained reports that the inbox is
// empty.
func (r *receiver) credit(s endState, t *Terms, drained bool, a *deferred) {
	left, window := r.promised(), r.hold.Bytes()
	var use uint64
	if r.taken+window >= r.granted+min(window/2, mostOwed) {
		use = r.use(t, r.taken+window-r.granted)
		r.usedUp = r.usedUp || window < use // remembered until the inbox is empty
	}
	// the peer waits for the window, or is about to, and not for the application
	grows := drained && r.usedUp
	if grows {
		r.usedUp = false
		r.grow(t, min(max(2*window, use), t.largest()), a)
	}
	needed := r.needed(t)
	window = r.hold.Bytes()
	due := r.taken+window >= r.granted+min(window/2, mostOwed) || drained && (left < uint64(t.Early) || needed > 0)
	if due {
		if !grows {
			r.grow(t, min(window, t.largest()), a)
		}
		r.raise(t, needed, a)
	}
	if due || grows {
		r.grantRest(s, t, a)
	}
}

// refill sends credit if the application waits, and less is left than the peer always gets. A Skip
// may have left so little.
func (r *receiver) refill(s endState, t *Terms, a *deferred) {
	lacks := r.windowed() && r.promised() < uint64(t.Early) && r.arriving() == nil
	if lacks && s.wants() && r.hold.Base > 0 && r.listens() && r.inbox.Len() == 0 {
		r.credit(s, t, true, a)
	}
}

// use returns the window that the path can use, given the owed cost of this pipe: its part of twice
// the capacity of the path. The part is in proportion to its part of the cost that was owed since
// the last call.
func (r *receiver) use(t *Terms, owed uint64) uint64 {
	follows := t.follows()
	if follows == 0 {
		return 0
	}
	s := r.needs()
	all := t.owed.Add(owed)
	since := all - s.owed
	s.owed = all
	return follows / max(since/owed, 1)
}

// begin gives the receiver the window of a handler that is about to run.
func (r *receiver) begin(s endState, t *Terms, h flow.Window, a *deferred) {
	if !s.wants() { // no more Blocks arrive
		a.grant(t.Budget.End(&h))
		return
	}
	a.grant(t.Budget.Join(&r.hold, h))
	r.raise(t, 0, a)
}

// settle releases the room for Blocks that cannot arrive any more, and keeps the room of the
// received ones.
func (r *receiver) settle(s endState, t *Terms, a *deferred) {
	if !r.windowed() {
		return
	}
	r.forget(s, t, a)
	a.grant(t.Budget.Shrink(&r.hold, r.received(t)-r.taken))
}

// release releases the whole room of the window, for Blocks that will not be taken.
func (r *receiver) release(s endState, t *Terms, a *deferred) {
	if !r.windowed() {
		return
	}
	r.forget(s, t, a)
	a.grant(t.Budget.End(&r.hold))
}
