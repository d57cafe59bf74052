package asterisque

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// nodeConnection is the interface of a connection for its node.
type nodeConnection interface {
	// Shutdown ends the connection gracefully.
	Shutdown(ctx context.Context) error

	// closeFor ends the connection with cause, and waits for the end of its goroutines.
	closeFor(cause error)
}

// closers is a set of objects that a node ends when it is closed. It locks itself.
type closers[T comparable] struct {
	mu     sync.Mutex
	all    map[T]struct{} // guarded by mu, as closed
	closed bool
}

// Add adds v. It reports false if the set is closed.
func (k *closers[T]) Add(v T) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	if k.all == nil {
		k.all = make(map[T]struct{})
	}
	k.all[v] = struct{}{}
	return true
}

// IsClosed reports whether the set is closed.
func (k *closers[T]) IsClosed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.closed
}

// Remove removes v, if it is present.
func (k *closers[T]) Remove(v T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.all, v)
}

// list returns the elements.
func (k *closers[T]) list() []T {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Keys(k.all))
}

// close closes the set to further elements, and returns the present ones.
func (k *closers[T]) close() []T {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	return k.list()
}

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
