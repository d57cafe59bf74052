package flowmodel

import (
	"fmt"

	"github.com/asterisque-go/asterisque/internal/flow"
)

// check records the first fault.
func (s *session) check(ok bool, what string) {
	if !ok && s.fault == "" {
		s.fault, s.faultAt = what, s.counts.Steps
	}
}

// blocks returns the room for Blocks without the room for large ones.
func (e *end) blocks() int {
	return (e.plan.Workers+e.plan.Callers)*e.plan.Window + e.plan.Elastic
}

// invariants is checked after each step: granted credit fits into the room reserved for it.
func (s *session) invariants(a *actor) {
	for i := range s.ends {
		e := &s.ends[i]
		p, load := &e.plan, e.room.Load()
		s.check(e.opens.Promised() <= p.Opens, "Opens: more is promised than there is room for")
		s.check(load.Windows().Granted+load[flow.Initial].Granted+e.prepaid <= e.blocks(), "windows: more is promised than there is room for")
		s.check(load[flow.Large].Granted <= p.Large, "large Blocks: more is promised than there is room for")
		s.check(e.nested <= p.NestedCalls && e.inner <= p.Nested, "too much is nested here")
		s.check(e.nesting.sizes <= p.NestedOwn, "streams within calls have too large windows")
	}
	if a.d != nil {
		s.checkDirection(a.d)
	}
	if s.counts.Steps%512 == 0 { // expensive, so not after each step
		s.recount()
	}
}

// checkDirection checks that the granted credit and the inbox of a direction are covered by its
// room.
func (s *session) checkDirection(d *direction) {
	promised := d.promised()
	if d.eof || d.c.over[d.to()] {
		promised = d.received - d.taken
	}
	paid := int(d.hold.Bytes()) + d.debt + d.running + d.prepaid
	if d.isUp && d.c.callee == calleeWaits {
		paid += s.ends[d.to()].plan.Window // paid by the Open
	}
	if promised <= paid || d.stopped || d.done || s.broken.Overshoot {
		return
	}
	s.check(false, fmt.Sprintf("call %d, up %v: %d bytes are promised beyond the %d that were taken,"+
		" and %d are set aside: %+v", d.c.id, d.isUp, promised, d.taken, paid, d.receiving))
}

// sums is the state of an end, counted anew.
type sums struct {
	windows, large, inMessages, inBytes, opens, inner, nested, holding int
	prepaid, within                                                    int
}

// recount compares the counters with the actual state.
func (s *session) recount() {
	var have [2]sums
	for _, c := range s.calls {
		s.countCall(c, &have[c.from], &have[c.to()])
		if c.stream {
			s.countDirection(&c.up, &have[c.to()])
			s.countDirection(&c.down, &have[c.from])
		}
	}
	for i := range s.ends {
		s.compare(&s.ends[i], &have[i])
	}
}

func (s *session) countCall(c *call, here, there *sums) {
	if c.claimed && !c.opened && c.turn {
		here.windows += s.ends[c.from].plan.Window
	}
	switch c.callee {
	case calleeWaits:
		there.inMessages++
		there.inBytes += heldOpen(c)
	case calleeRuns:
		there.holding += c.params
	}
	if c.nested && (c.callee == calleeWaits || c.callee == calleeRuns) {
		there.nested++
		there.inner += c.cost
	}
	if !c.nested && c.callee == calleeWaits {
		there.opens += c.cost
	}
	if c.parked {
		there.holding += heldMessage + c.result
	}
}

func (s *session) countDirection(d *direction, have *sums) {
	s.checkDirection(d)
	e := &s.ends[d.to()]
	if d.hold.Class != flow.Prepaid {
		have.windows += int(d.hold.Base)
	} else if !d.isUp {
		have.within += int(d.hold.Base)
	}
	have.windows += int(d.hold.Extra)
	if d.class == flow.Large {
		have.large += d.debt
	} else {
		have.windows += d.debt
	}
	have.holding += d.running
	have.prepaid += d.prepaid
	cost := d.kept
	if d.kept > 0 {
		have.inMessages++
		have.inBytes += heldBlock(d.kept, e)
	}
	for _, c := range d.inbox.costs {
		have.inMessages++
		have.inBytes += heldBlock(c, e)
		cost += c
	}
	s.check(d.received-d.taken == cost, "the received cost is miscounted")
}

func (s *session) compare(e *end, have *sums) {
	load, held := e.room.Load(), e.inbound.Held()
	if len(e.granted) == 0 { // otherwise some claims do not know of their grants yet
		s.check(load.Windows().Granted == have.windows, "windows are miscounted")
		s.check(load[flow.Large].Granted == have.large, "large Blocks are miscounted")
	}
	s.check(held.Messages == have.inMessages && held.Bytes == have.inBytes, "inbound messages are miscounted")
	s.check(e.prepaid == have.prepaid, "Blocks before handlers are miscounted")
	s.check(have.within <= e.plan.NestedOwn, "the windows of streams within calls have no room")
	s.check(s.broken.ReturnEarly || e.opens.Held()-e.awayCost == have.opens, "Opens are miscounted")
	s.check(e.away > 0 || e.inner == have.inner && e.nested == have.nested, "calls within calls are miscounted")
	s.check(e.away > 0 || e.holding == have.holding, "the memory of running calls is miscounted")
}

// leftovers describes the resources that are still held after everything has ended, or returns "".
func (s *session) leftovers() string {
	for i := range s.ends {
		e, sent := &s.ends[i], s.ends[1-i].credit.used
		load, in, out := e.room.Load(), e.inbound.Held(), e.outbound.Held()
		switch {
		case in.Messages != 0 || in.Bytes != 0:
			return fmt.Sprint("inbound ", in)
		case out.Messages != 0 || out.Bytes != 0 || s.wires[i].len() != 0:
			return fmt.Sprint("outbound ", out)
		case e.active+e.lent+e.waiting+e.parked+e.away+e.holding+e.nested+e.inner != 0:
			return fmt.Sprintf("%+v", e.dispatcher)
		case load.Windows().Granted != 0 || load[flow.Large] != (flow.Load{Minimum: e.plan.Large}) || load[flow.Made].Waiting != 0:
			return fmt.Sprintf("room %+v", load)
		case e.nesting != nesting{}:
			return fmt.Sprintf("calls within calls %+v", e.nesting)
		case e.opens.Held() != 0 || int(e.opens.Received()) != sent:
			return fmt.Sprintf("%d of Opens are held, %d were sent and %d received", e.opens.Held(), sent, e.opens.Received())
		}
	}
	return ""
}
