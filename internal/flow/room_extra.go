package flow

// extraCredit is spare room that the peer may use for the first Blocks of the streams that it
// opens. Both numbers are totals since the session began.
type extraCredit struct {
	granted, taken uint64
	peer           ExtraGranter // fixed
}

// ExtraGranter tells the peer of extra credit. GrantExtra is called without a lock when there is
// more, and sends the total of [Room.Extra].
type ExtraGranter interface{ GrantExtra() }

// left returns the bytes that the peer has not taken.
func (e *extraCredit) left() int { return int(e.granted - e.taken) }

// Extra returns the total of the extra credit.
func (r *Room) Extra() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.extra == nil {
		return uint64(r.plan.Extra)
	}
	return r.extra.granted
}

// extraLeft returns the extra credit that the peer has not taken.
func (r *Room) extraLeft() int {
	if r.extra == nil {
		return r.plan.Extra
	}
	return r.extra.left()
}

// TakeExtra stores in h, for a stream that the peer opens, the extra credit that its Open takes. It
// returns false if that is more than was granted. From the first call on, r grants the peer more
// when half of it is used.
func (r *Room) TakeExtra(h *Hold, bytes uint64, peer ExtraGranter) (ok bool, granted []*Waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if bytes > uint64(r.extraLeft()) {
		return false, nil
	}
	if r.extra == nil {
		r.extra = &extraCredit{granted: uint64(r.plan.Extra), peer: peer}
	}
	r.extra.taken += bytes
	r.fresh += int(bytes)
	*h = Hold{Extra: uint32(bytes), fresh: true}
	return true, r.grantLocked(nil)
}

// Join makes the window that a handler begins with a part of h, which holds the extra credit of its
// Open. The window is the larger of both.
func (r *Room) Join(h *Hold, begun Hold) []*Waiter {
	if h.Extra == 0 {
		*h = begun
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	less := int(min(h.Extra, begun.Extra))
	r.spare += less
	r.fresh -= less
	h.Base, h.Source, h.Extra = begun.Base, begun.Source, max(h.Extra, begun.Extra)
	return r.grantLocked(nil)
}

// extraLocked grants more extra credit, up to an eighth of the free spare room and no more than
// initially, if the peer has less than half of that. It returns what tells the peer, or nil.
func (r *Room) extraLocked() *Waiter {
	if r.extra == nil {
		return nil
	}
	left := r.extra.left()
	more := min(min(max(r.spare, 0)/8, r.plan.Extra)-left, r.freshLocked())
	if more <= left || r.tally.Pressed() {
		return nil
	}
	r.spare -= more
	r.extra.granted += uint64(more)
	return &Waiter{Granted: func(bool) { r.extra.peer.GrantExtra() }}
}
