package wait

import "sync"

// Notice wakes goroutines that wait for a change. The zero value is ready for use.
type Notice struct {
	mu      sync.Mutex
	changed chan struct{} // guarded by mu; closed at the next change; nil while no goroutine waits
}

// Next returns a channel that is closed at the next change.
func (n *Notice) Next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changed == nil {
		n.changed = make(chan struct{})
	}
	return n.changed
}

// Signal wakes all waiting goroutines.
func (n *Notice) Signal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
}

// Over is a channel that is closed.
var Over = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
