package flow

// extraCredit is spare room that the peer may use for the first Blocks of the streams that it
// opens. Both numbers are totals since the session began.
type extraCredit struct {
	granted, taken uint64
	due            *Waiter // granted when there is more to grant; nil: none is ever granted; fixed
}

// left returns the bytes that the peer has not taken.
func (e *extraCredit) left() int { return int(e.granted - e.taken) }

// OnExtra makes r grant the peer more extra credit when half of it is used: r grants w, again and
// again, whose Granted sends the total of [Room.Extra] to the peer. It is called before the first
// grant.
func (r *Room) OnExtra(w *Waiter) { r.extra.due = w }

// Extra returns the total of the extra credit.
func (r *Room) Extra() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.extra.granted
}

// TakeExtra stores in h, for a stream that the peer opens, the extra credit that its Open takes. It
// returns false if that is more than was granted.
func (r *Room) TakeExtra(h *Hold, bytes uint64) (ok bool, granted []*Waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if bytes > r.extra.granted-r.extra.taken {
		return false, nil
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
// initially, if the peer has less than half of that.
func (r *Room) extraLocked() bool {
	left := r.extra.left()
	more := min(min(max(r.spare, 0)/8, r.plan.Extra)-left, r.freshLocked())
	if r.extra.due == nil || more <= left || r.tally.Pressed() {
		return false
	}
	r.spare -= more
	r.extra.granted += uint64(more)
	return true
}
