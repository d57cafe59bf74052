package piping

// spareLocked returns the credit of this side beyond the credit that the peer always grants.
func (e *End) spareLocked() uint64 {
	_, ok := e.state.next(sendBlock)
	if !ok || e.out.limit == Unlimited || e.out.limit <= e.out.sent+e.terms.PeerEarly {
		return 0
	}
	return e.out.limit - e.out.sent - e.terms.PeerEarly
}

// Idle returns the credit beyond stays to the peer, if no Block was sent since the previous call,
// which returned seen. again reports whether to call Idle again later: the pipe is in use and has
// spare credit.
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

// Skipping returns the total that counts as sent when the Skip departs: all granted credit but
// stays. sent is the cost that has departed in this direction, the low bits. ok is false if the
// pipe is in use again, and the Skip is not to be sent.
func (e *End) Skipping(sent uint32, stays uint64) (total uint64, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	asks := e.out.queue != nil && !e.out.asks().rests()
	if e.spareLocked() == 0 || e.out.limit <= e.out.sent+stays || uint32(e.out.sent) != sent || asks {
		return 0, false
	}
	e.out.sent = e.out.limit - stays
	return e.out.sent, true
}
