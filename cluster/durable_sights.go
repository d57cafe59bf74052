package cluster

import (
	"container/list"
	"sync"
	"time"
)

// durableSights remembers since when this node has seen the entries of calls that run elsewhere, of
// so many that were asked for last.
type durableSights struct {
	most int // fixed

	mu     sync.Mutex
	byName map[string]*list.Element // guarded by mu, as order; of it
	order  list.List                // of *durableSight; what was asked for last is in front
}

type durableSight struct {
	name     string
	revision uint64
	since    time.Time
}

func newDurableSights(most int) *durableSights {
	return &durableSights{most: most, byName: make(map[string]*list.Element)}
}

// since returns since when the entry of a call is known with that revision: now, if it was not.
func (s *durableSights) since(name string, revision uint64) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.byName[name]
	if at == nil {
		at = s.order.PushFront(&durableSight{name: name})
		s.byName[name] = at
	}
	s.order.MoveToFront(at)
	seen := at.Value.(*durableSight)
	if seen.revision != revision || seen.since.IsZero() {
		seen.revision, seen.since = revision, time.Now()
	}
	if s.order.Len() > s.most {
		delete(s.byName, s.order.Remove(s.order.Back()).(*durableSight).name)
	}
	return seen.since
}
