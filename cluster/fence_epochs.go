package cluster

import (
	"container/list"
	"sync"
)

// epochs remembers the highest epoch of each of so many keys, those that were used last.
type epochs struct {
	most int // fixed

	mu    sync.Mutex
	byKey map[string]*list.Element // guarded by mu, as order; of it
	order list.List                // of epochOf; what was used last is in front
}

type epochOf struct {
	key   string
	epoch uint64
}

func newEpochs(most int) *epochs {
	return &epochs{most: most, byKey: make(map[string]*list.Element)}
}

// of returns the highest epoch of a key, 0 if none is known.
func (e *epochs) of(key string) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := e.byKey[key]
	if at == nil {
		return 0
	}
	e.order.MoveToFront(at)
	return at.Value.(*epochOf).epoch
}

// note remembers epoch unless a higher one is known, and returns the highest.
func (e *epochs) note(key string, epoch uint64) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if at := e.byKey[key]; at != nil {
		known := at.Value.(*epochOf)
		known.epoch = max(known.epoch, epoch)
		e.order.MoveToFront(at)
		return known.epoch
	}
	e.byKey[key] = e.order.PushFront(&epochOf{key, epoch})
	if e.order.Len() > e.most {
		delete(e.byKey, e.order.Remove(e.order.Back()).(*epochOf).key)
	}
	return epoch
}
