package outbox

import "sync/atomic"

// intake is where Opens arrive without the lock: callers are many, and once one has had to wait for a mutex for long, Go hands it from one to the next, with a switch of goroutines each time.
// Whoever has the lock next takes all that have arrived, in the order in which they came.
type intake struct {
	newest atomic.Pointer[Message]
}

// push adds m, and reports whether it is the first since all were taken.
func (i *intake) push(m *Message) (first bool) {
	for {
		older := i.newest.Load()
		m.older = older
		if i.newest.CompareAndSwap(older, m) {
			return older == nil
		}
	}
}

// take removes all, and returns the oldest one.
func (i *intake) take() (oldest *Message) {
	if i.newest.Load() == nil {
		return nil
	}
	for m := i.newest.Swap(nil); m != nil; {
		m, m.older, oldest = m.older, oldest, m
	}
	return oldest
}

// Enter is Put for an Open whose caller waits for what becomes of it: m belongs to the Outbox until Depart or Discard is called, or Cancel has returned. The only error is
// *TooLargeError.
func (o *Outbox) Enter(f *Flow, m *Message) (write bool, err error) {
	if err := o.tooLarge(m); err != nil {
		return false, err
	}
	m.flow = f
	if !o.intake.push(m) {
		return false, nil // whoever was first sees to it that somebody takes them
	}
	o.mu.Lock()
	defer o.unlock()
	if o.closed || o.halted {
		o.admitLocked()
		return false, nil
	}
	write, o.writing = !o.writing, true
	return write, nil
}

// admitLocked accepts all Opens that have arrived.
func (o *Outbox) admitLocked() {
	for m := o.intake.take(); m != nil; {
		f, next := m.flow, m.older // m is its caller's again as soon as it has departed
		m.older = nil
		switch {
		case o.closed:
			f.closed = true
			o.dropLocked(f, m, Closed)
		case f.closed: // it was canceled
			o.gone.add(m)
		default:
			o.acceptLocked(f, m)
		}
		m = next
	}
}
