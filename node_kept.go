package asterisque

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// nodeConnection is a connection, as far as its node needs to know it.
type nodeConnection interface {
	// Shutdown ends it in good order.
	Shutdown(ctx context.Context) error

	// closeFor ends it because of cause, and waits until nothing of it is left.
	closeFor(cause error)
}

// kept is a set of what a node has to end when it is closed. It locks itself.
type kept[T comparable] struct {
	mu     sync.Mutex
	all    map[T]struct{} // guarded by mu, as closed
	closed bool
}

// add adds v. It reports false if the set is closed.
func (k *kept[T]) add(v T) bool {
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

// isClosed reports whether nothing more can be added.
func (k *kept[T]) isClosed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.closed
}

// remove takes v out, if it is there.
func (k *kept[T]) remove(v T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.all, v)
}

// list returns what is there.
func (k *kept[T]) list() []T {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Keys(k.all))
}

// close lets nothing more be added, and returns what is there.
func (k *kept[T]) close() []T {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	return k.list()
}
