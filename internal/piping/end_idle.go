package piping

// Initial returns the credit beyond the guaranteed one with which this side began, for a pipe whose
// Open was not sent, so that no Credit has come.
func (e *End) Initial() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.out.limit == Unlimited {
		return 0
	}
	return e.out.limit - min(e.terms.PeerEarly, e.out.limit)
}

// Idle returns the credit beyond stays to the peer, if no Block was sent since the previous call,
// which returned seen. again reports whether to call Idle again later. Otherwise Port.Watch is
// called when there is a reason to.
func (e *End) Idle(seen, stays uint64) (sent uint64, again bool) {
	stays = max(stays, e.terms.PeerEarly)
	e.mu.Lock()
	spare, sent := e.spareLocked(), e.out.sent
	divided := e.out.isDivided()
	skip := !divided && e.state&skips == 0 && sent == seen && spare > 0 && spare+e.terms.PeerEarly > stays
	if skip {
		e.state |= skips
	}
	e.mu.Unlock()
	if skip {
		e.port.Skip(stays)
	}
	return sent, spare > 0 && !divided
}

// Skipping returns the total that counts as sent when the Skip departs: all granted credit but
// stays. sent is the cost that has departed in this direction, the low bits. ok is false if the
// pipe is in use again, and the Skip is not to be sent.
func (e *End) Skipping(sent uint32, stays uint64) (total uint64, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state &^= skips
	if e.spareLocked() == 0 || e.out.limit <= e.out.sent+stays || uint32(e.out.sent) != sent || e.out.isDivided() {
		return 0, false
	}
	e.out.sent = e.out.limit - stays
	return e.out.sent, true
}
