package quota

import "sync/atomic"

// Slots bounds the places that all owners of a node have together. One owner may have as many as
// are left, so that there is always a remainder for another (dynamic thresholds, as for windows).
// Its methods are safe for concurrent use.
type Slots struct {
	Owners *Owners // these are fixed; owners have one Slots
	Max    int64   // places

	used atomic.Int64
}

// Acquire takes a place for w, and reports whether there was one.
func (r *Slots) Acquire(w *Owner) bool {
	own := w.slots.Add(1)
	if own+r.used.Add(1) <= r.Max {
		return true
	}
	r.Release(w)
	return false
}

// Release returns a place. An owner is kept while it has places.
func (r *Slots) Release(w *Owner) {
	r.used.Add(-1)
	if w.slots.Add(-1) == 0 {
		r.Owners.forget(w)
	}
}

// InUse returns the number of places in use.
func (r *Slots) InUse() int { return int(r.used.Load()) }
