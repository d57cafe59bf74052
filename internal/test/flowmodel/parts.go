package flowmodel

// leastPart is the size of the content of the smallest part that is not the last one.
const leastPart = 1 << 10

// onBlock processes a whole Block that has arrived.
func (s *session) onBlock(e *end, d *direction, cost int) {
	if d.c.over[e.index] || s.unknownCall(e, d) {
		return
	}
	s.check(d.end == 0, "a Block has arrived within another one")
	s.arrive(e, d, cost)
	if !d.stopped {
		s.complete(e, d, cost)
	}
}

// onPart processes a part of a Block. The first part announces the end of the Block.
func (s *session) onPart(e *end, d *direction, m *message) {
	if d.c.over[e.index] || s.unknownCall(e, d) {
		return
	}
	least := leastPart
	if m.total > 0 {
		s.check(d.end == 0, "a Block has begun within another one")
		s.check(m.total <= e.plan.Largest+e.plan.Overhead, "a Block is too large")
		d.end = d.received + m.total
		least += e.plan.Overhead
	}
	s.arrive(e, d, m.sent)
	s.check(m.last == (d.received == d.end), "the parts of a Block do not end with it")
	s.check(m.last || m.sent >= least, "a part is too small")
	if m.last {
		d.end = 0
	}
	switch {
	case d.stopped:
	case m.last:
		cost := d.kept + m.sent
		s.keep(e, d, 0)
		s.complete(e, d, cost)
	default:
		s.keep(e, d, d.kept+m.sent)
		s.grantEnd(e, d)
	}
}

// onNullPart processes the end of a Block that was given up. It counts in full, as if it had
// arrived and had been taken.
func (s *session) onNullPart(e *end, d *direction) {
	if d.c.over[e.index] || s.unknownCall(e, d) {
		return
	}
	s.check(d.end > 0, "a null part has arrived outside of a Block")
	if !s.broken.GivenUpFreed && !s.broken.GivenUpKept {
		d.taken += d.end - d.received
		d.received = d.end
	}
	d.end = 0
	d.taken += d.kept
	if d.stopped {
		d.taken = d.received
		return
	}
	s.keep(e, d, 0)
	s.withdraw(e, d)
	if s.settle(e, d); s.broken.GivenUpFreed {
		s.freeDebt(e, d)
	}
	if !s.broken.GivenUpUnrenewed {
		s.renew(e, d)
	}
}

// onSkip processes credit that the peer hands back: it counts as received and taken.
func (s *session) onSkip(e *end, d *direction, cost int) {
	if d.c.over[e.index] || d.eof || s.unknownCall(e, d) {
		return
	}
	s.check(d.end == 0, "a Skip has arrived within a Block")
	s.check(d.received+cost <= d.granted, "a Skip is beyond the window")
	d.received += cost
	d.taken += cost
	if d.stopped {
		return
	}
	e.grant(e.room.Shrink(&d.hold, uint64(s.leastWindow(d))))
	if d.waiting && d.inbox.len() == 0 {
		s.renew(e, d)
	}
}

// arrive counts a Block, or a part.
func (s *session) arrive(e *end, d *direction, cost int) {
	room := d.granted - d.received - cost
	s.check(room >= 0 || s.broken.Overshoot && d.received < d.granted, "a Block is beyond its window")
	d.usedUp = d.usedUp || room < max(cost, e.plan.Window)
	d.received += cost
	if d.stopped {
		d.taken = d.received
	}
}

// complete puts a complete Block into the inbox.
func (s *session) complete(e *end, d *direction, cost int) {
	d.inbox.push(cost)
	e.inbound.Add(heldBlock(cost, e))
	s.moveDebt(e, d)
}

// keep sets the cost that is kept of the Block under way.
func (s *session) keep(e *end, d *direction, cost int) {
	switch {
	case d.kept == cost:
	case d.kept == 0:
		e.inbound.Add(heldBlock(cost, e))
	case cost == 0:
		e.inbound.Remove(1, heldBlock(d.kept, e))
	default:
		e.inbound.Grow(cost - d.kept)
	}
	d.kept = cost
}
