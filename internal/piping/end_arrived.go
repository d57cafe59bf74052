package piping

// Verdict says what an arriving message was.
type Verdict uint8

const (
	Accepted Verdict = iota
	// the pipe is over, or wants no more; it is normal that messages cross a Close or Stop, and
	// they are ignored
	Late
	Violation // the peer must not send this: a Block after its end-of-stream
	Overrun   // the peer exceeded the window it was granted
)

// BlockArrived takes a Block. What is not Accepted remains the caller's.
func (e *End) BlockArrived(b Block) Verdict {
	var a after
	e.mu.Lock()
	v := e.blockLocked(b, &a)
	e.unlock(a)
	return v
}

// Admits says what a Block of so many bytes would be if it arrived now. It changes nothing. Where
// the Block would be Accepted, it will be: what is granted does not shrink.
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
func (e *End) blockLocked(b Block, a *after) Verdict {
	switch _, ok := e.state.next(recvBlock); {
	case ok:
	case e.state.over():
		return Late
	default:
		return Violation
	}
	if s := e.in.special; s != nil && s.wish.allowance == allowDue {
		// it is for a Block that has yet to be sent, when this one has been taken
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

// EndArrived takes the peer's end-of-stream, after skipped Blocks that did not arrive.
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
	var a after
	e.in.settle(s, e.terms, &a)
	e.unlock(a)
	return Accepted
}

// AskArrived takes the peer's question for the next Block, which is to reach total after sent. It
// reports false if that is not what has arrived.
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
	var a after
	e.in.forget(e.state, e.terms, &a) // and what was allowed, unless a Block has come since
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

// StopArrived takes the peer's word that it wants no more Blocks.
func (e *End) StopArrived() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s, ok := e.state.next(recvStop); ok {
		e.state = s
		e.wakeLocked() // senders that wait learn it
	}
}

// CreditArrived takes the peer's grant: it accepts total bytes in all. A total below an earlier one
// changes nothing. It reports whether this side has credit from then on that may be handed back.
func (e *End) CreditArrived(total uint64) (spare bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.out.raise(total) {
		e.wakeLocked()
	}
	return e.spareLocked() > 0
}

// SkipArrived takes the peer's word that what it has been granted up to sent is handed back. It
// reports false if that is less than what has arrived, or more than what was granted.
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
	var a after
	e.in.taken += sent - received
	// an Ask and an Allow count on the window as it was
	if s := e.in.special; e.state.wants() && (s == nil || s.wish.none()) {
		a.grant(e.terms.Room.Shrink(&e.in.hold, e.in.promised()))
	}
	e.unlock(a)
	return true
}

// AllowArrived takes the peer's answer to an Ask: the next Block may reach total. It is ignored if
// nobody has asked for just that.
func (e *End) AllowArrived(total uint64) {
	e.mu.Lock()
	if e.state.over() || !e.out.hasAskedFor(total) {
		e.mu.Unlock()
		return
	}
	back := e.out.queue.asking.allow(e.out.sent, total)
	e.wakeLocked()
	e.mu.Unlock()
	if back {
		e.port.Ask()
	}
}
