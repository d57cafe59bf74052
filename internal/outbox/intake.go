package outbox

import "sync/atomic"

// intake is where Opens arrive without the lock: callers are many, and once one has had to wait for
// a mutex for long, Go hands it from one to the next, with a switch of goroutines each time. The
// writer takes all that have arrived, in the order in which they came.
type intake struct {
	// noMore once nothing may come; all but push have the lock of the Outbox
	newest atomic.Pointer[Message]
}

// noMore stands where nothing may be pushed any more.
var noMore = new(Message)

// push adds m, and reports whether it is the first since all were taken. It is refused after close.
func (i *intake) push(m *Message) (first, refused bool) {
	for {
		older := i.newest.Load()
		if older == noMore {
			return false, true
		}
		m.older = older
		if i.newest.CompareAndSwap(older, m) {
			return older == nil, false
		}
	}
}

func (i *intake) empty() bool {
	m := i.newest.Load()
	return m == nil || m == noMore
}

// take removes all, and returns the oldest one.
func (i *intake) take() (oldest *Message) {
	if i.empty() {
		return nil
	}
	return reversed(i.newest.Swap(nil))
}

// close is take, and lets nothing be pushed any more.
func (i *intake) close() (oldest *Message) { return reversed(i.newest.Swap(noMore)) }

// reversed turns the list around that m is the newest of, and returns the oldest.
func reversed(m *Message) (oldest *Message) {
	for m != nil {
		m, m.older, oldest = m.older, oldest, m
	}
	return oldest
}

// Enter is Put for an Open whose caller waits for what becomes of it: m belongs to the Outbox until
// Depart or Discard is called, or Cancel has returned. The only error is *TooLargeError.
func (o *Outbox) Enter(f *Flow, m *Message) (write bool, err error) {
	if err := o.tooLarge(m); err != nil {
		return false, err
	}
	o.prepare(m)
	m.flow = f
	first, refused := o.intake.push(m)
	if refused {
		m.free()
		o.mu.Lock()
		defer o.unlock()
		o.dropLocked(f, m, Closed)
		return false, nil
	}
	// Whoever is first finds the writer, or becomes it; the others rely on that. A writer that
	// leaves looks here once more after it has said so.
	return first && !o.writing.Swap(true), nil
}

// admitLocked accepts all Opens that have arrived.
func (o *Outbox) admitLocked() { o.acceptAllLocked(o.intake.take()) }

// acceptAllLocked accepts m and those that came after it.
func (o *Outbox) acceptAllLocked(m *Message) {
	for m != nil {
		f, next := m.flow, m.older // m is its caller's again as soon as it has departed
		m.older = nil
		switch {
		case o.closed:
			m.free()
			o.dropLocked(f, m, Closed)
		case f.closed: // it was canceled
			m.free()
			o.gone.add(m)
		default:
			o.acceptLocked(f, m)
		}
		m = next
	}
}
