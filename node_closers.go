package asterisque

import (
	"context"
	"maps"
	"slices"
	"sync"
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
