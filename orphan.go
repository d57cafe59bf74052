package asterisque

import (
	"time"
)

// A durable call that runs goes on when its session has ended, but not for ever.

// orphan lets a call that runs go on although its session has ended: for as long as its answer would
// be remembered. If too many do, the one that has for the longest time is canceled.
func (o *once) orphan(m *memory) {
	o.mu.Lock()
	r := m.open
	if r == nil || r.alone != nil {
		o.mu.Unlock()
		return
	}
	c := r.first
	r.alone = o.lonely.PushBack(m)
	r.lapse = time.AfterFunc(o.keep, func() { c.end(canceled) })
	var ends *incoming
	if o.ended || o.lonely.Len() > o.orphans {
		oldest := o.lonely.Front().Value.(*memory)
		ends = oldest.open.first
		o.joinLocked(oldest)
	}
	o.mu.Unlock()
	if ends != nil {
		ends.end(canceled)
	}
}

// joinLocked says that m is not, or no more, one of those that run on without a session.
func (o *once) joinLocked(m *memory) {
	if r := m.open; r != nil && r.alone != nil {
		r.lapse.Stop()
		o.lonely.Remove(r.alone)
		r.alone, r.lapse = nil, nil
	}
}
