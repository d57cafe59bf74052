package cluster

import (
	"container/list"
	"sync"
	"time"
)

// firstSeenCalls records when this node has first seen the entries of calls that run elsewhere, for
// the most recently used ones.
type firstSeenCalls struct {
	most int // fixed

	mu     sync.Mutex
	byName map[string]*list.Element // elements of order by name; guarded by mu, as order
	order  list.List                // of *firstSeen; the most recently used first
}

type firstSeen struct {
	name     string
	revision uint64
	since    time.Time
}

func newDurableSights(most int) *firstSeenCalls {
	return &firstSeenCalls{most: most, byName: make(map[string]*list.Element)}
}

// since returns the time since which the entry of a call is known with that revision: now, if it is
// new.
func (s *firstSeenCalls) since(name string, revision uint64) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.byName[name]
	if at == nil {
		at = s.order.PushFront(&firstSeen{name: name})
		s.byName[name] = at
	}
	s.order.MoveToFront(at)
	seen := at.Value.(*firstSeen)
	if seen.revision != revision || seen.since.IsZero() {
		seen.revision, seen.since = revision, time.Now()
	}
	if s.order.Len() > s.most {
		delete(s.byName, s.order.Remove(s.order.Back()).(*firstSeen).name)
	}
	return seen.since
}
