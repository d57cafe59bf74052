package cluster

import (
	"container/list"
	"sync"
)

// fenceEpochs remembers the highest epoch of each key, for the most recently used ones.
type fenceEpochs struct {
	most int // fixed

	mu    sync.Mutex
	byKey map[string]*list.Element // elements of order by key; guarded by mu, as order
	order list.List                // of *fenceEpoch; the most recently used first
}

type fenceEpoch struct {
	key   string
	epoch uint64
}

func newFenceEpochs(most int) *fenceEpochs {
	return &fenceEpochs{most: most, byKey: make(map[string]*list.Element)}
}

// of returns the highest known epoch of a key, or 0.
func (e *fenceEpochs) of(key string) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := e.byKey[key]
	if at == nil {
		return 0
	}
	e.order.MoveToFront(at)
	return at.Value.(*fenceEpoch).epoch
}

// note remembers epoch unless a higher one is known, and returns the highest.
func (e *fenceEpochs) note(key string, epoch uint64) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if at := e.byKey[key]; at != nil {
		known := at.Value.(*fenceEpoch)
		known.epoch = max(known.epoch, epoch)
		e.order.MoveToFront(at)
		return known.epoch
	}
	e.byKey[key] = e.order.PushFront(&fenceEpoch{key, epoch})
	if e.order.Len() > e.most {
		delete(e.byKey, e.order.Remove(e.order.Back()).(*fenceEpoch).key)
	}
	return epoch
}
