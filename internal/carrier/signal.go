package carrier

import "sync/atomic"

// signal is a channel that is closed once. It costs no memory until a caller waits for it. The zero
// signal is ready for use.
type signal struct {
	c atomic.Pointer[chan struct{}]
}

// over is the channel of a signal that fired before any caller waited for it.
var over = func() *chan struct{} {
	c := make(chan struct{})
	close(c)
	return &c
}()

// fire closes the channel. It is called once.
func (s *signal) fire() {
	if c := s.c.Swap(over); c != nil {
		close(*c)
	}
}

// fired returns the channel.
func (s *signal) fired() <-chan struct{} {
	if c := s.c.Load(); c != nil {
		return *c
	}
	c := make(chan struct{})
	if s.c.CompareAndSwap(nil, &c) {
		return c
	}
	return *s.c.Load()
}
