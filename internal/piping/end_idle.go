package piping

// spareLocked returns how much credit this side has beyond what is never kept from it.
func (e *End) spareLocked() uint64 {
	_, ok := e.state.next(sendBlock)
	if !ok || e.out.limit == Unlimited || e.out.limit <= e.out.sent+e.terms.PeerEarly {
		return 0
	}
	return e.out.limit - e.out.sent - e.terms.PeerEarly
}

// Idle hands the credit back that is beyond what stays, if nothing was sent since the look before,
// which returned seen. It reports whether there is something to look at again: spare credit of a
// pipe that is in use.
func (e *End) Idle(seen, stays uint64) (sent uint64, again bool) {
	e.mu.Lock()
	spare, sent := e.spareLocked(), e.out.sent
	e.mu.Unlock()
	switch {
	case spare == 0:
		return sent, false
	case sent != seen:
		return sent, true
	case spare+e.terms.PeerEarly > stays:
		e.port.Skip(max(stays, e.terms.PeerEarly))
	}
	return sent, false
}

// Skipping returns what counts as sent when the Skip departs, with sent being the low bits of the
// cost of what has departed in this direction: all but what stays of what the peer has granted. ok
// is false if the pipe is in use again, and the Skip is not to be sent.
func (e *End) Skipping(sent uint32, stays uint64) (total uint64, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	asks := e.out.queue != nil && !e.out.queue.asking.rests()
	if e.spareLocked() == 0 || e.out.limit <= e.out.sent+stays || uint32(e.out.sent) != sent || asks {
		return 0, false
	}
	e.out.sent = e.out.limit - stays
	return e.out.sent, true
}
