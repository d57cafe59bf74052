package agent

import "sync"

// notice wakes whoever waits for a change.
type notice struct {
	mu      sync.Mutex
	changed chan struct{} // guarded by mu; closed with the next change; nil: nobody waits
}

// next returns a channel that is closed with the next change.
func (n *notice) next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changed == nil {
		n.changed = make(chan struct{})
	}
	return n.changed
}

func (n *notice) signal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
}
