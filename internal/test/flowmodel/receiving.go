package flowmodel

import (
	"github.com/asterisque-go/asterisque/internal/flow"
)

// receiving is the state of the receiver of a direction: the application, and its side of the
// window.
type receiving struct {
	slow      bool
	recvSleep int        // sleeps for ever after this number of takes; -1: never
	stopAt    int        // accepts no more after this number; -1: never
	sink      *direction // passes on each Block received here; nil: none
	takes     int
	done      bool // the application has taken the end, or accepts no more

	inbox   inbox
	waiting bool // the application waits to receive
	absent  bool // the application has ended a Receive, and does something else for a while
	eof     bool // the end has arrived
	stopped bool // no more Blocks are accepted
	prepaid int  // bytes of Blocks that arrived, with the end, before the handler began

	hold      flow.Window
	taken     int
	received  int
	granted   int  // the limit, as the peer knows it or is about to
	usedUp    bool // the peer has to wait for a larger window
	creditDue bool // there is a Credit for the peer

	end  int // announced end of the Block under way; 0: none
	kept int // its cost, as far as it has arrived

	claim   flow.Waiter
	claimed bool       // it waits for room, or has been granted without knowing it yet
	debt    int        // bytes held for the Block beside the window
	class   flow.Class // of the debt
	running int        // or in the room for running calls
	awaited bool       // the application waited for the Block when the claim was granted
	idle    bool       // the room for large Blocks may evict the Block
}

// inbox is the costs of the Blocks that have not been taken.
type inbox struct{ costs []int }

func (b *inbox) len() int      { return len(b.costs) }
func (b *inbox) push(cost int) { b.costs = append(b.costs, cost) }

func (b *inbox) pop() (cost int) {
	cost = b.costs[0]
	b.costs = b.costs[1:]
	return cost
}

func heldBlock(cost int, e *end) int { return flow.Held(cost - e.plan.Overhead) }

// recvOver reports whether the application takes nothing more.
func (d *direction) recvOver() bool { return d.done || d.c.over[d.to()] && d.inbox.len() == 0 }

// recvReady reports whether the application has reached its receiving.
func (d *direction) recvReady() bool {
	if d.isUp {
		return d.c.handlerReady()
	}
	return d.c.caller == callerSent || d.c.caller == callerReads
}

// recvStep is the receiving application.
func (s *session) recvStep(d *direction, timers bool) callResult {
	e := &s.ends[d.to()]
	switch {
	case d.recvOver():
		d.waiting = false
		return gone
	case !d.recvReady(), d.recvSleep >= 0 && d.takes >= d.recvSleep && !d.waiting:
		return blocked
	case d.waiting && timers && s.random.oneIn(s.patience[1]):
		s.leave(e, d)
		d.absent = s.random.oneIn(2)
		if s.fallsAsleep(e, d) {
			d.recvSleep = d.takes
		}
		return moved
	case d.absent && timers && !s.random.oneIn(16):
		return blocked
	case d.inbox.len() > 0 && d.sinkBusy() && !d.waiting, d.inbox.len() == 0 && d.waiting && !d.eof:
		return blocked
	case d.stopAt >= 0 && d.takes >= d.stopAt && !d.waiting && !d.c.over[d.to()]:
		s.stop(e, d)
		return gone
	case d.inbox.len() > 0:
		s.take(e, d)
		return moved
	case d.eof:
		d.waiting, d.done = false, true
		return gone
	case d.sinkBusy():
		return blocked
	}
	d.waiting, d.absent = true, false
	s.renew(e, d)
	return moved
}

// unknownCall reports whether the call of d was rejected on arrival, so that this end does not know
// it.
func (s *session) unknownCall(e *end, d *direction) bool {
	return d.isUp && d.c.callee != calleeWaits && d.c.callee != calleeRuns
}

// onEnd processes the end of a direction that has arrived.
func (s *session) onEnd(e *end, d *direction) {
	if d.c.over[e.index] || s.unknownCall(e, d) {
		return
	}
	s.check(d.end == 0, "a direction ends within a Block")
	s.check(d.sent == d.received, "both ends count the Blocks differently")
	d.eof = true
	e.grant(e.room.Shrink(&d.hold, uint64(d.received-d.taken)))
}

// beginHandler gives the handler that is about to run its window.
func (s *session) beginHandler(e *end, d *direction, h flow.Window) {
	if d.eof {
		d.prepaid = max(0, d.received-d.taken-int(d.hold.Bytes()))
		e.prepaid += d.prepaid
		e.grant(e.room.End(&h))
		return
	}
	if s.broken.DropInitial {
		d.hold = flow.Window{}
	}
	e.grant(e.room.Join(&d.hold, h))
	s.raise(d)
}

// raise grants the whole window.
func (s *session) raise(d *direction) {
	total := d.taken + int(d.hold.Bytes())
	if total <= d.granted {
		return
	}
	d.granted = total
	s.announce(d)
}

// announce schedules a Credit with the new limit of d.
func (s *session) announce(d *direction) {
	if !d.creditDue {
		d.creditDue = true
		o := &s.ends[d.to()].outbox
		o.announced = append(o.announced, d)
	}
}

// sendCredit sends the Credit of d.
func (d *direction) sendCredit(w *wire) {
	d.creditDue = false
	if !d.c.over[d.to()] && !d.stopped && !d.eof {
		w.push(message{kind: creditControl, c: d.c, d: d, size: controlSize, total: d.granted})
	}
}

// take passes one Block to the application. Windows grow, shrink, and move on.
func (s *session) take(e *end, d *direction) {
	cost := d.inbox.pop()
	d.waiting, d.absent = false, false
	d.takes++
	d.taken += cost
	e.inbound.Remove(1, heldBlock(cost, e))
	e.grant(e.room.Took(&d.hold))
	if d.c.over[e.index] {
		if d.inbox.len() == 0 {
			s.release(e, d)
		}
		return // the remaining Blocks hold the room
	}
	if !s.broken.EndedKeeps || !d.eof {
		s.settle(e, d)
	}
	if !d.eof {
		s.renew(e, d)
	} else if d.inbox.len() == 0 {
		s.dropPrepaid(e, d)
		e.grant(e.room.Shrink(&d.hold, 0))
	}
}

// renew grants the credit that is due: it moves the window, and grants the end of the Block under
// way. It is called when a Block was taken or given up, and when the application begins to wait.
func (s *session) renew(e *end, d *direction) {
	if d.isUp && d.c.callee == calleeWaits {
		return // no credit before the handler begins
	}
	s.moveWindow(e, d)
	s.grantEnd(e, d)
}

// moveWindow moves the window, if a Credit is due.
func (s *session) moveWindow(e *end, d *direction) {
	drained := d.inbox.len() == 0
	window := int(d.hold.Bytes())
	want := window
	if drained && d.usedUp {
		d.usedUp = false
		want = min(2*window, s.largestWindow)
	}
	owed := d.taken + window - d.granted
	short := drained && d.waiting && d.granted-d.taken < e.plan.Window && !s.broken.HalfWindows
	due := owed >= window/2 || short
	if !due && want == window {
		return
	}
	least := s.leastWindow(d)
	if s.broken.GrowAnywhere {
		least = max(least, min(want, window+e.unpromised()))
	}
	e.grant(e.room.Grow(&d.hold, uint64(want), uint64(least)))
	if due {
		s.raise(d)
	}
}

// leastWindow returns the size below which the window of d must not shrink: the promised cost,
// without the part that a debt covers.
func (s *session) leastWindow(d *direction) int {
	switch {
	case s.broken.ShrinkHeld:
		return max(0, d.granted-d.taken-d.debt-d.running)
	case s.broken.DebtTwice:
		return d.promised()
	}
	return max(0, d.promised()-d.debt-d.running)
}

// unpromised returns the room that is neither granted to windows nor held, even if it is guaranteed
// to another stream.
func (e *end) unpromised() int { return e.blocks() - e.prepaid - windows(e.room).Granted }

// stop rejects further Blocks.
func (s *session) stop(e *end, d *direction) {
	d.done = true
	d.stopped = !d.eof
	s.discard(e, d)
	s.release(e, d)
	if d.eof {
		return
	}
	s.count(e, message{kind: stopMessage, c: d.c, d: d, held: heldMessage, size: 16})
}

// discard empties the inbox, and drops the arrived parts of the Block under way.
func (s *session) discard(e *end, d *direction) {
	for d.inbox.len() > 0 {
		cost := d.inbox.pop()
		d.taken += cost
		e.inbound.Remove(1, heldBlock(cost, e))
	}
	d.taken += d.kept
	s.keep(e, d, 0)
	s.dropPrepaid(e, d)
}

// dropPrepaid records that no Block is left of those that arrived before the handler began.
func (s *session) dropPrepaid(e *end, d *direction) {
	e.prepaid -= d.prepaid
	d.prepaid = 0
}

// release releases all the room of a direction.
func (s *session) release(e *end, d *direction) {
	s.withdraw(e, d)
	s.freeDebt(e, d)
	e.grant(e.room.End(&d.hold))
	if !d.isUp {
		e.nesting.drop(d.c)
	}
}

// leaveLeft leaves the received Blocks of an ended call to the application.
func (s *session) leaveLeft(e *end, d *direction) {
	if !d.stopped {
		s.check(d.end == 0, "a direction ends within a Block")
		s.check(d.sent == d.received, "both ends count the Blocks differently")
	}
	if d.inbox.len() == 0 {
		s.release(e, d)
		return
	}
	s.counts.Left++
	if s.broken.LeftUnpaid {
		s.freeDebt(e, d)
	}
	e.grant(e.room.Shrink(&d.hold, uint64(d.received-d.taken)))
	if s.broken.LeftForgotten {
		e.nesting.drop(d.c)
	}
}

// dropLeft drops the remaining Blocks, since the application cannot take them any more.
func (s *session) dropLeft(e *end, d *direction) {
	s.discard(e, d)
	s.release(e, d)
}
