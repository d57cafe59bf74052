package outbox

import "sync"

// Pooled is an object with a Flow that is used for one call after the other.
type Pooled interface {
	// Flow returns the flow of the present call.
	Flow() *Flow

	// Reset clears all references of the object, and the Flow.
	Reset()
}

// Pool keeps objects whose calls are over for the next calls. It is the only way to use the memory
// of a Flow again: an object enters it when the Outbox does not refer to the Flow any more, however
// the call has ended. The zero Pool is empty and ready to use. It is safe for concurrent use.
type Pool struct{ objects sync.Pool }

// Get returns an object that was put, or nil if there is none.
func (p *Pool) Get() Pooled {
	v, _ := p.objects.Get().(Pooled)
	return v
}

// Put takes v, whose call is over: its Departer was told, or Cancel or Finish has returned. owner
// is the Outbox of its Flow, or the one that passes Finish on. Nobody may use v after that.
func (p *Pool) Put(owner interface{ Finish(*Flow, Reason) bool }, v Pooled) {
	owner.Finish(v.Flow(), Ended)
	v.Reset()
	p.objects.Put(v)
}
