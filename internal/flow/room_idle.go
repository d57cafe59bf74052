package flow

// Idle registers w, of a holder of room for large Blocks whose application does not take its
// Block. [Room.Evict] returns w when another waiter has to wait for that room. Idle returns false,
// and does nothing, if one waits already.
func (r *Room) Idle(w *Waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.linesLocked()
	if l.asking.len > 0 {
		return false
	}
	l.idle = append(l.idle, w)
	return true
}

// Evict removes and returns the waiters of Idle. It is called after [Room.Allow] has returned
// false.
func (r *Room) Evict() []*Waiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lines == nil {
		return nil
	}
	idle := r.lines.idle
	r.lines.idle = nil
	return idle
}
