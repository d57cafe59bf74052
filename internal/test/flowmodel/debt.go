package flowmodel

import (
	"github.com/asterisque-go/asterisque/internal/flow"
)

// Credit for the Block under way: its end is granted to an application that waits for the Block.
// The debt is the part of that grant that the window does not cover.

// promised returns the cost that the peer may send, or has sent, and that was not taken.
func (d *direction) promised() int { return max(d.granted, d.received) - d.taken }

// wantsEnd reports whether the application waits for the Block under way, all Blocks before were
// taken, and the peer needs credit for the rest.
func (s *session) wantsEnd(e *end, d *direction) bool {
	if d.end <= d.granted || d.stopped || d.eof || d.c.over[e.index] {
		return false
	}
	return d.waiting && d.inbox.len() == 0 || s.broken.GrantEarly && (!d.isUp || d.c.callee == calleeRuns)
}

// grantEnd raises the limit to the end of the Block under way, if its application waits for it: by
// a larger window if possible, else by a debt, for which the direction may have to wait.
func (s *session) grantEnd(e *end, d *direction) {
	if !s.wantsEnd(e, d) || d.claimed {
		return
	}
	window := int(d.hold.Bytes())
	if need := d.end - d.taken; need > window && need <= s.largestWindow {
		want := min(max(need, 2*window), s.largestWindow)
		e.grant(e.room.Grow(&d.hold, uint64(want), uint64(s.leastWindow(d))))
	}
	bytes := d.end - d.taken - int(d.hold.Bytes())
	switch {
	case bytes <= 0:
		s.raise(d)
		return
	case !s.broken.NoLarge && bytes > e.plan.Large:
		return
	}
	d.claim = flow.Waiter{Priority: d.c.priority, Bytes: bytes, Granted: func(bool) { s.claimGranted(e, d) }}
	if d.claimed = !e.room.Acquire(flow.Large, &d.claim); d.claimed {
		e.grant(e.room.Evict())
	} else {
		s.grantDebt(d)
	}
}

// claimGranted is called when the claim is granted. Its room may not be needed any more.
func (s *session) claimGranted(e *end, d *direction) {
	d.claimed = false
	if s.wantsEnd(e, d) && d.taken+int(d.hold.Bytes())+d.claim.Bytes >= d.end {
		s.grantDebt(d)
		return
	}
	e.grant(e.room.Release(d.claim.Source(), d.claim.Bytes))
	s.grantEnd(e, d)
}

// grantDebt raises the limit by the room of the granted claim.
func (s *session) grantDebt(d *direction) {
	s.counts.Debts++
	d.debt += d.claim.Bytes
	d.class = d.claim.Source()
	d.awaited = d.waiting
	d.granted = d.end
	s.announce(d)
}

// windows returns the room of windows.
func windows(b *flow.Budget) flow.Load {
	all := b.Load()
	return all.Windows()
}

// withdraw withdraws the claim, if it waits.
func (s *session) withdraw(e *end, d *direction) {
	if !d.claimed {
		return
	}
	waited, granted := e.room.Withdraw(&d.claim)
	if waited { // otherwise its Granted is about to be called
		d.claimed = false
	}
	e.grant(granted)
}

// settle frees the debt once the window covers the promised cost: the Block was taken, or given up.
func (s *session) settle(e *end, d *direction) {
	if !s.broken.DebtKept && d.promised() <= int(d.hold.Bytes()) {
		s.freeDebt(e, d)
	}
}

// freeDebt releases the room of the debt.
func (s *session) freeDebt(e *end, d *direction) {
	e.grant(e.room.Release(d.class, d.debt))
	e.holding -= d.running
	e.blocksHeld -= d.running
	d.debt, d.running = 0, 0
}

// leave ends a Receive before its Block was taken. A claim keeps its turn.
func (s *session) leave(e *end, d *direction) {
	d.waiting = false
	s.moveDebt(e, d)
}

// moveDebt moves the debt of a complete Block that no application waits for, so that the large
// Blocks of other streams need not wait: to elastic room, or to the room of running calls. If
// neither has room, the call ends when another claim has to wait.
func (s *session) moveDebt(e *end, d *direction) {
	if d.waiting || d.end > 0 || d.debt == 0 || d.class != flow.Large || s.broken.DebtStays {
		return
	}
	ok, granted := e.room.Move(d.debt)
	e.grant(granted)
	switch {
	case ok:
		s.counts.ToElastic++
		d.class = flow.Elastic
	case e.holding+d.debt <= e.plan.Room && e.blocksHeld+d.debt <= max(e.plan.Room/8, e.plan.Large):
		s.counts.ToRunning++
		e.blocksHeld += d.debt
		e.holding += d.debt
		e.grant(e.room.Release(flow.Large, d.debt))
		d.running, d.debt = d.running+d.debt, 0
	case d.idle:
	case !e.room.Idle(&flow.Waiter{Granted: func(bool) { s.evict(e, d) }}):
		s.evict(e, d)
	default:
		d.idle = true
	}
}

// evict is called when another claim waits for the room of a Block that no application takes.
func (s *session) evict(e *end, d *direction) {
	d.idle = false
	if d.waiting || d.end > 0 || d.debt == 0 || d.class != flow.Large {
		return
	}
	s.counts.Stalled++
	s.check(d.awaited, "a call stalls though its application has never waited for the Block")
	s.endStalled(e, d)
}

// endStalled ends a call that has no room for a received Block.
func (s *session) endStalled(e *end, d *direction) {
	if d.isUp {
		s.stall(e, d.c)
		return
	}
	if d.c.over[e.index] {
		s.dropLeft(e, d)
	} else {
		s.abort(e, d.c)
	}
	s.endCaller(e, d.c)
}
