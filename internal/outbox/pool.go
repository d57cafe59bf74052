package outbox

import "sync"

// Pooled is an object with a Flow that is reused for one call after the other.
type Pooled interface {
	// Flow returns the flow of the present call.
	Flow() *Flow

	// Reset clears all references of the object, and the Flow.
	Reset()
}

// Pool keeps the objects of ended calls for later calls. It is the only way to reuse the memory of
// a Flow: an object enters the Pool when the Outbox does not refer to its Flow any more, regardless
// of how the call has ended. The zero Pool is empty and ready for use. It is safe for concurrent
// use.
type Pool struct{ objects sync.Pool }

// Get returns an object that was put, or nil if there is none.
func (p *Pool) Get() Pooled {
	v, _ := p.objects.Get().(Pooled)
	return v
}

// Put takes v, the object of an ended call: its Departer was called, or Cancel or Finish has
// returned. owner is the Outbox of its Flow, or an object that forwards Finish. v must not be used
// afterwards.
func (p *Pool) Put(owner interface{ Finish(*Flow, Reason) bool }, v Pooled) {
	owner.Finish(v.Flow(), Ended)
	v.Reset()
	p.objects.Put(v)
}
