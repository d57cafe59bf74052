package piping

// signal wakes goroutines that wait for a condition under the lock of the pipe. Its methods need
// that lock. The channel is made for the first waiting goroutine, so an unused signal has none. A
// woken goroutine checks the condition again, and passes the signal on if a further goroutine may
// continue.
type signal struct {
	ch chan struct{}
}

// closed is the channel of a signal that ended before any goroutine waited for it.
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (s *signal) wait() <-chan struct{} {
	if s.ch == nil {
		s.ch = make(chan struct{}, 1)
	}
	return s.ch
}

// set wakes one goroutine, now or at its next wait.
func (s *signal) set() {
	if s.ch == nil {
		return
	}
	select {
	case s.ch <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// end wakes all goroutines, now and for ever. set must not be called after it.
func (s *signal) end() {
	if s.ch == nil {
		s.ch = closed
	} else {
		close(s.ch)
	}
}
