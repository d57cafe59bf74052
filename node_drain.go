package asterisque

import (
	"sync"
	"sync/atomic"
)

// nodeDrain says whether a node has begun to go away.
type nodeDrain struct {
	once  sync.Once
	begun chan struct{} // closed when it has; fixed

	told atomic.Bool // a Shutdown tells the hooks of its progress: there is one to tell

	mu sync.Mutex
	// guarded by mu, as none: handshakes with who has connected, until their session has begun
	shaking int
	none    chan struct{} // closed when there are none; nil while nobody waits
}

// hasBegun reports whether the node has begun to go away.
func (d *nodeDrain) hasBegun() bool {
	select {
	case <-d.begun:
		return true
	default:
		return false
	}
}

func (d *nodeDrain) begin() { d.once.Do(func() { close(d.begun) }) }

// shakes notes that a handshake begins, until the function that it returns is called.
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

// shaken returns a channel that is closed when no handshake is under way, for a single Shutdown or
// several.
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
