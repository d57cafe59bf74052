package flowmodel

import (
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/piping"
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
	eof     bool // the end has arrived
	stopped bool // no more Blocks are accepted
	prepaid int  // bytes of Blocks that arrived, with the end, before the handler began

	hold      flow.Hold
	taken     int
	received  int
	granted   int  // the limit, as the peer knows it or is about to
	usedUp    bool // the peer has to wait for a larger window
	announced bool // there are Controls for the peer
	creditDue bool // a Credit
	allowDue  bool // an Allow

	wish      int // total of the present Ask; 0: none
	claim     flow.Waiter
	claimed   bool // it waits for room, or has been granted without knowing it yet
	allowed   int  // total of the Allow; 0: none
	used      bool // a Block has arrived since
	debt      int  // bytes held in the room for large Blocks
	sheltered int  // or in the room for running calls
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

func heldBlock(cost int, e *end) int { return cost - e.plan.Overhead + piping.Hold }

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
		if d.c.sleepy && d.recvSleep < 0 && d.sheltered == 0 && s.random.oneIn(2) {
			d.recvSleep = d.takes
		}
		return moved
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
	d.waiting = true
	s.answerAsk(e, d)
	return moved
}

// onBlock processes a Block that has arrived.
func (s *session) onBlock(e *end, d *direction, cost int) {
	if d.c.over[e.index] || s.unknownCall(e, d) {
		return
	}
	if d.allowDue && !s.broken.LoseAsks { // it is for a Block that has not been sent yet
		s.recall(e, d)
	}
	limit := d.granted
	if d.allowed > 0 && !d.used { // the first Block uses it
		limit = max(limit, d.allowed)
		d.used = true
	}
	room := limit - d.received - cost
	s.check(room >= 0 || s.broken.Overshoot && d.received < limit, "a Block is beyond its window")
	d.usedUp = d.usedUp || room < max(cost, e.plan.Window)
	d.received += cost
	if d.stopped {
		d.taken += cost
		return
	}
	d.inbox.push(cost)
	e.inbound.Add(heldBlock(cost, e))
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
	d.eof = true
	s.forgetAsk(e, d)
	e.grant(e.room.Shrink(&d.hold, uint64(d.received-d.taken)))
}

// beginHandler gives the handler that is about to run its window.
func (s *session) beginHandler(e *end, d *direction, h flow.Hold) {
	if d.eof {
		d.prepaid = max(0, d.received-d.taken-int(d.hold.Bytes()))
		e.prepaid += d.prepaid
		e.grant(e.room.End(&h))
		return
	}
	if s.broken.DropInitial {
		d.hold = flow.Hold{}
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
	d.granted, d.creditDue = total, true
	s.announce(d)
	if d.wish > 0 && total >= d.wish {
		d.wish = 0
		s.withdraw(&s.ends[d.to()], d)
	}
}

// announce schedules the Controls of d.
func (s *session) announce(d *direction) {
	if !d.announced {
		d.announced = true
		o := &s.ends[d.to()].outbox
		o.announced = append(o.announced, d)
	}
}

// controls sends the Controls of d.
func (d *direction) controls(w *wire) {
	credit, allow := d.creditDue, d.allowDue
	d.creditDue, d.allowDue, d.announced = false, false, false
	if d.c.over[d.to()] || d.stopped || d.eof {
		return
	}
	if credit {
		w.push(message{kind: creditControl, c: d.c, d: d, size: controlSize, total: d.granted})
	}
	if allow {
		w.push(message{kind: allowControl, c: d.c, d: d, size: controlSize, total: d.allowed})
	}
}

// take passes one Block to the application. Windows grow, shrink, and move on.
func (s *session) take(e *end, d *direction) {
	cost := d.inbox.pop()
	d.waiting = false
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
	drained := d.inbox.len() == 0
	if (drained || !s.broken.SettleLate) && !(s.broken.EndedKeeps && d.eof) {
		s.settle(e, d)
	}
	if d.eof {
		if drained {
			s.dropPrepaid(e, d)
			e.grant(e.room.Shrink(&d.hold, 0))
		}
		return
	}
	s.moveWindow(e, d, drained)
}

// moveWindow moves a window after a Block was taken.
func (s *session) moveWindow(e *end, d *direction, drained bool) {
	left := max(0, d.granted-d.taken)
	window := int(d.hold.Bytes())
	want := window
	if drained && d.usedUp {
		d.usedUp = false
		want = min(2*window, s.largestWindow)
	}
	owed := d.taken + window - d.granted
	due := owed >= window/2 || drained && (left < e.plan.Window || d.wish > 0)
	if !due && want == window {
		return
	}
	least := left
	if s.broken.GrowAnywhere {
		least = max(left, min(want, window+e.unpromised()))
	}
	e.grant(e.room.Grow(&d.hold, uint64(want), uint64(least)))
	if due {
		s.raise(d)
	}
	s.answerAsk(e, d)
}

// unpromised returns the room that is neither granted to windows nor held, even if it is guaranteed
// to another stream.
func (e *end) unpromised() int { return e.blocks() - e.prepaid - e.room.Load().Windows }

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

// discard empties the inbox.
func (s *session) discard(e *end, d *direction) {
	for d.inbox.len() > 0 {
		cost := d.inbox.pop()
		d.taken += cost
		e.inbound.Remove(1, heldBlock(cost, e))
	}
	s.dropPrepaid(e, d)
}

// dropPrepaid records that no Block is left of those that arrived before the handler began.
func (s *session) dropPrepaid(e *end, d *direction) {
	e.prepaid -= d.prepaid
	d.prepaid = 0
}

// release releases all the room of a direction.
func (s *session) release(e *end, d *direction) {
	s.forgetAsk(e, d)
	s.vacate(e, d)
	e.grant(e.room.End(&d.hold))
	if !d.isUp {
		e.nesting.drop(d.c)
	}
}

// leaveLeft leaves the received Blocks of an ended call to the application.
func (s *session) leaveLeft(e *end, d *direction) {
	if d.inbox.len() == 0 {
		s.release(e, d)
		return
	}
	s.counts.Left++
	if !d.used || s.broken.LeftUnpaid { // otherwise its Block has arrived
		s.vacate(e, d)
	}
	s.forgetAsk(e, d)
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
