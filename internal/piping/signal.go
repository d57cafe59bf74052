package piping

// signal wakes goroutines that wait for a condition under the pipe's lock. Its methods need that
// lock; the channel is made for the first who waits, so that a pipe nobody waits for holds none. A
// woken goroutine looks at the condition again, and passes the signal on if there is more to have.
type signal struct {
	ch chan struct{}
}

// closed is what waiting for an ended signal returns when nobody waited before.
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (s *signal) wait() <-chan struct{} {
	if s.ch == nil {
		s.ch = make(chan struct{}, 1)
	}
	return s.ch
}

// set wakes one goroutine, now or when it comes to wait.
func (s *signal) set() {
	if s.ch == nil {
		return
	}
	select {
	case s.ch <- struct{}{}:
	default: // a wake-up is on its way already
	}
}

// end wakes everybody, now and for ever. set must not be called after it.
func (s *signal) end() {
	if s.ch == nil {
		s.ch = closed
	} else {
		close(s.ch)
	}
}
