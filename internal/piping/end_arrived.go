package piping

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

// BlockArrived processes a Block. Unless the verdict is Accepted, the caller keeps the Block.
func (e *End) BlockArrived(b Block) Verdict {
	var a deferred
	e.mu.Lock()
	v := e.blockLocked(b, &a)
	e.unlock(a)
	return v
}

// Admits returns the verdict for a Block of the given payload without processing it. An Accepted
// remains valid, because granted credit does not shrink.
func (e *End) Admits(payload int) Verdict {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch _, ok := e.state.next(recvBlock); {
	case !ok && e.state.over():
		return Late
	case !ok:
		return Violation
	case !e.in.mayAdmit(e.terms, payload):
		return Overrun
	}
	return Accepted
}

// blockLocked is BlockArrived.
func (e *End) blockLocked(b Block, a *deferred) Verdict {
	switch _, ok := e.state.next(recvBlock); {
	case ok:
	case e.state.over():
		return Late
	default:
		return Violation
	}
	if s := e.in.extras; s != nil && s.wish.allowance == allowDue {
		// it is for a Block that is sent after this one was taken
		s.wish.recall(e.terms.Room, a)
	}
	if !e.in.admits(e.terms, len(b.Payload)) {
		return Overrun
	}
	if e.state&stoppedHere != 0 {
		e.in.taken += e.terms.cost(len(b.Payload))
		return Late
	}
	e.in.push(b)
	return Accepted
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

// AskArrived processes the peer's Ask for the next Block, which would reach total after sent. It
// returns false if sent is not the cost that has arrived.
func (e *End) AskArrived(sent, total uint64) bool {
	e.mu.Lock()
	if !e.state.wants() || !e.in.windowed() {
		e.mu.Unlock()
		return true
	}
	if sent != e.in.received(e.terms) {
		e.mu.Unlock()
		return false
	}
	var a deferred
	e.in.forget(e.state, e.terms, &a) // and takes back an Allow, unless its Block has arrived since
	if total > sent && total > e.in.granted {
		w := &e.in.needs().wish
		if w.granted == nil {
			w.granted = e.claimGranted
		}
		w.total = total
		e.in.answer(e.state, e.terms, &a)
	}
	e.unlock(a)
	return true
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
	// an Ask and an Allow refer to the present size of the window
	if s := e.in.extras; e.state.wants() && (s == nil || s.wish.none()) {
		a.grant(e.terms.Room.Shrink(&e.in.hold, e.in.promised()))
	}
	e.unlock(a)
	return true
}

// AllowArrived processes the peer's answer to an Ask: the next Block may reach total. It has no
// effect unless exactly that total was asked for.
func (e *End) AllowArrived(total uint64) {
	e.mu.Lock()
	if e.state.over() || !e.out.hasAskedFor(total) {
		e.mu.Unlock()
		return
	}
	back := e.out.asks().allow(e.out.sent, total)
	e.wakeLocked()
	e.mu.Unlock()
	if back {
		e.port.Ask()
		e.port.Watch()
	}
}
