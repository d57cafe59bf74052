package flow

// extraCredit is elastic room that the peer may use for the first Blocks of the streams that it
// opens. Both numbers are totals since the session began.
type extraCredit struct {
	granted, taken uint64
	peer           ExtraGranter // fixed
}

// ExtraGranter tells the peer of extra credit. GrantExtra is called without a lock when there is
// more, and sends the total of [Budget.Extra].
type ExtraGranter interface{ GrantExtra() }

// Extra returns the total of the extra credit.
func (b *Budget) Extra() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.extra == nil {
		return uint64(b.plan.Extra)
	}
	return b.extra.granted
}

// extraLeft returns the extra credit that the peer has not taken.
func (b *Budget) extraLeft() int {
	if b.extra == nil {
		return b.plan.Extra
	}
	return int(b.extra.granted - b.extra.taken)
}

// TakeExtra stores in w, for a stream that the peer opens, the extra credit that its Open takes. It
// returns false if that is more than was granted. From the first call on, b grants the peer more
// when half of it is used.
func (b *Budget) TakeExtra(w *Window, bytes uint64, peer ExtraGranter) (ok bool, granted []*Waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if bytes > uint64(b.extraLeft()) {
		return false, nil
	}
	if b.extra == nil {
		b.extra = &extraCredit{granted: uint64(b.plan.Extra), peer: peer}
	}
	b.extra.taken += bytes
	b.fresh += int(bytes)
	*w = Window{Extra: uint32(bytes), fresh: true}
	return true, b.grantLocked()
}

// Join makes the window that a handler begins with a part of w, which holds the extra credit of its
// Open. The window is the larger of both.
func (b *Budget) Join(w *Window, begun Window) []*Waiter {
	if w.Extra == 0 {
		*w = begun
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	less := int(min(w.Extra, begun.Extra))
	b.free[Elastic] += less
	b.fresh -= less
	w.Base, w.Class, w.Extra = begun.Base, begun.Class, max(w.Extra, begun.Extra)
	return b.grantLocked()
}

// extraLocked grants more extra credit, up to an eighth of the free elastic room and no more than
// initially, if the peer has less than half of that. It returns what tells the peer, or nil.
func (b *Budget) extraLocked() *Waiter {
	if b.extra == nil {
		return nil
	}
	left := b.extraLeft()
	more := min(min(max(b.free[Elastic], 0)/8, b.plan.Extra)-left, b.freshLocked())
	if more <= left || b.tally.Pressed() {
		return nil
	}
	b.free[Elastic] -= more
	b.extra.granted += uint64(more)
	return &Waiter{Granted: func(bool) { b.extra.peer.GrantExtra() }}
}
