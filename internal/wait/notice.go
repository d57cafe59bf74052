package wait

import "sync"

// Notice wakes whoever waits for a change. The zero value is ready to use.
type Notice struct {
	mu      sync.Mutex
	changed chan struct{} // guarded by mu; closed with the next change; nil: nobody waits
}

// Next returns a channel that is closed with the next change.
func (n *Notice) Next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changed == nil {
		n.changed = make(chan struct{})
	}
	return n.changed
}

// Signal wakes all who wait.
func (n *Notice) Signal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
}
