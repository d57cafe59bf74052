package asterisque

import (
	"sync"
	"sync/atomic"
)

// nodeDrain records whether a node is shutting down.
type nodeDrain struct {
	once  sync.Once
	begun chan struct{} // closed when the shutdown begins; fixed

	told atomic.Bool // a Shutdown reports its progress to the hooks: at most one does

	mu sync.Mutex
	// guarded by mu, as none: inbound handshakes, until their sessions begin
	shaking int
	none    chan struct{} // closed when shaking is 0; nil without a waiter
}

// hasBegun reports whether the node is shutting down.
func (d *nodeDrain) hasBegun() bool {
	select {
	case <-d.begun:
		return true
	default:
		return false
	}
}

func (d *nodeDrain) begin() { d.once.Do(func() { close(d.begun) }) }

// shakes counts a handshake until the returned function is called.
func (d *nodeDrain) shakes() (over func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shaking++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.shaking--; d.shaking == 0 && d.none != nil {
			close(d.none)
			d.none = nil
		}
	}
}

// shaken returns a channel that is closed when no handshake is under way, for any number of
// Shutdowns.
func (d *nodeDrain) shaken() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.none == nil {
		d.none = make(chan struct{})
	}
	c := d.none
	if d.shaking == 0 {
		close(c)
		d.none = nil
	}
	return c
}
