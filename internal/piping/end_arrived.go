package piping

import "math"

// Verdict classifies an arriving message.
type Verdict uint8

const (
	Accepted Verdict = iota
	// the pipe is over, or accepts no more Blocks; messages that crossed a Close or Stop are
	// ignored
	Late
	Violation // a protocol error: a Block after the end-of-stream
	Overrun   // the peer exceeded its window
)

// BlockArrived processes a whole Block. Unless the verdict is Accepted, the caller keeps the Block.
func (e *End) BlockArrived(b Block) Verdict {
	var a deferred
	e.mu.Lock()
	v := e.blockLocked(b)
	e.moveDebtAndUnlock(a)
	return v
}

// blockLocked is BlockArrived. The parts of a Block have been checked as they arrived.
func (e *End) blockLocked(b Block) Verdict {
	if v := e.expectsLocked(); v != Accepted {
		return v
	}
	if part := e.in.arriving(); part != nil {
		part.underway = false
		e.in.largest = max(e.in.largest, uint32(min(e.terms.cost(part.whole), math.MaxUint32)))
	} else if !e.in.admits(e.terms, len(b.Payload)) {
		return Overrun
	}
	if e.state&stoppedHere != 0 {
		e.in.taken += e.terms.cost(len(b.Payload))
		return Late
	}
	e.in.push(b)
	return Accepted
}

// expectsLocked returns Accepted if a Block may arrive.
func (e *End) expectsLocked() Verdict {
	switch _, ok := e.state.next(recvBlock); {
	case ok:
		return Accepted
	case e.state.over():
		return Late
	default:
		return Violation
	}
}

// BlockBegins processes the head of a Block that arrives in parts. payload is the size of the whole
// Block. If the verdict is Accepted, PartArrived is called for each part, and BlockArrived or
// BlockAbandoned at the end.
func (e *End) BlockBegins(payload int) Verdict {
	e.mu.Lock()
	defer e.mu.Unlock()
	v := e.expectsLocked()
	switch {
	case v != Accepted:
		return v
	case e.state&stoppedHere != 0:
		return Late
	}
	b := &e.in.needs().arriving
	b.underway, b.whole, b.got = true, payload, 0
	if b.granted == nil {
		b.granted = e.claimGranted
	}
	return Accepted
}

// PartArrived processes a part of a Block. got is the number of bytes of the payload that have
// arrived. granted is the number of bytes that the peer may send in all before a further Credit.
func (e *End) PartArrived(got int) (granted int, v Verdict) {
	var a deferred
	e.mu.Lock()
	granted, v = e.partLocked(got, &a)
	e.unlock(a)
	return granted, v
}

// partLocked is PartArrived.
func (e *End) partLocked(got int, a *deferred) (granted int, v Verdict) {
	b := e.in.arriving()
	if b == nil {
		return 0, Late // the direction has ended
	}
	before := e.in.received(e.terms) - e.terms.cost(b.got)
	old := before
	if b.got > 0 {
		old += e.terms.cost(b.got)
	}
	if b.got = got; !e.in.count(e.terms, old, before+e.terms.cost(got)-old) {
		return 0, Overrun
	}
	e.in.grantRest(e.state, e.terms, a)
	if !e.in.windowed() {
		return b.whole, Accepted
	}
	return int(min(e.in.granted-before-e.terms.Overhead, uint64(b.whole))), Accepted
}

// BlockAbandoned is called when the peer has abandoned the Block that arrives in parts.
func (e *End) BlockAbandoned() {
	var a deferred
	e.mu.Lock()
	e.in.abandon(e.state, e.terms, &a)
	e.unlock(a)
}

// HasCredit reports whether the peer has the credit for the rest of the Block that arrives.
func (e *End) HasCredit() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.in.arriving() != nil && e.in.needed(e.terms) == 0
}

// EndArrived processes the peer's end-of-stream. skipped is the number of dropped Blocks before it.
func (e *End) EndArrived(skipped uint64) Verdict {
	e.mu.Lock()
	s, ok := e.state.next(recvEnd)
	if !ok {
		defer e.mu.Unlock()
		if e.state.over() {
			return Late
		}
		return Violation
	}
	e.state = s
	if skipped > 0 {
		e.in.needs().endSkipped = skipped
	}
	e.in.arrived.set()
	var a deferred
	e.in.settle(s, e.terms, &a)
	e.unlock(a)
	return Accepted
}

// StopArrived processes the peer's Stop: the peer accepts no more Blocks.
func (e *End) StopArrived() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s, ok := e.state.next(recvStop); ok {
		e.state = s
		e.wakeLocked() // waiting senders get the error
	}
}

// CreditArrived processes the peer's Credit: the peer accepts a cost of total in all. A total below
// an earlier one has no effect.
func (e *End) CreditArrived(total uint64) {
	e.mu.Lock()
	if e.out.raise(total) {
		e.wakeLocked()
	}
	spare := e.spareLocked() > 0
	e.mu.Unlock()
	if spare {
		e.port.Watch()
	}
}

// SkipArrived processes the peer's Skip, which returns its credit up to sent. It returns false if
// sent is below the cost that has arrived, or above the granted one.
func (e *End) SkipArrived(sent uint64) bool {
	e.mu.Lock()
	if e.state&(over|endedThere) != 0 || !e.in.windowed() {
		e.mu.Unlock()
		return true
	}
	received := e.in.received(e.terms)
	if sent < received || sent > e.in.granted {
		e.mu.Unlock()
		return false
	}
	var a deferred
	e.in.taken += sent - received
	if e.state.wants() {
		a.grant(e.terms.Budget.Shrink(&e.in.hold, e.in.used(e.terms)))
		e.in.refill(e.state, e.terms, &a)
	}
	e.unlock(a)
	return true
}
