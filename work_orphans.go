package asterisque

import "time"

// Durable calls that run on although their sessions have ended: their answers are for the next
// ones.

// orphan lets a call that runs go on although its session has ended: for as long as its answer
// would be remembered. If too many of its owner do, or too many of all, one is canceled.
func (o *once) orphan(m *memory) {
	o.mu.Lock()
	r := m.open
	if r == nil || r.alone != nil {
		o.mu.Unlock()
		return
	}
	c := r.first
	r.alone = o.lonely.PushBack(m)
	m.owner.durable.alone++
	m.owner.tally.Add(c.weight()) // of which the session tells no more
	r.lapse = time.AfterFunc(o.keep, func() { c.end(canceled) })
	var ends *served
	if own := m.owner.durable.alone > o.running; own || o.ended || o.lonely.Len() > o.orphans {
		one := m
		if own {
			one = o.oldestLocked(m.owner)
		} else if !o.ended {
			one = o.dispensableLocked()
		}
		ends = one.open.first
		o.joinLocked(one)
	}
	o.mu.Unlock()
	if ends != nil {
		ends.end(canceled)
	}
}

// dispensableLocked returns which of those that run on without a session is to end: of the owner
// who has most of them, the one that has for the longest time.
func (o *once) dispensableLocked() (one *memory) {
	for e := o.lonely.Front(); e != nil; e = e.Next() {
		m := e.Value.(*memory)
		if one == nil || m.owner.durable.alone > one.owner.durable.alone {
			one = m
		}
	}
	return one
}

// oldestLocked returns which of those of w has run on without a session for the longest time.
func (o *once) oldestLocked(w *owner) *memory {
	for e := o.lonely.Front(); ; e = e.Next() {
		if m := e.Value.(*memory); m.owner == w {
			return m
		}
	}
}

// joinLocked says that m is not, or no more, one of those that run on without a session.
func (o *once) joinLocked(m *memory) {
	if r := m.open; r != nil && r.alone != nil {
		r.lapse.Stop()
		o.lonely.Remove(r.alone)
		m.owner.durable.alone--
		m.owner.tally.Add(-r.first.weight())
		r.alone, r.lapse = nil, nil
	}
}
