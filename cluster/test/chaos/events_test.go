//go:build unix

package chaos

import (
	"fmt"
	"sync"
	"time"
)

// events are the faults of replicas, servers and wires.
type events struct {
	mu     sync.Mutex
	all    []*event       // guarded by mu
	counts map[string]int // guarded by mu
}

// event is one fault.
type event struct {
	what     string
	from, to time.Time // to is zero until it ends
}

func newEvents() *events { return &events{counts: make(map[string]int)} }

// begin records the start of an event; kind is the key of its count. The returned function records
// its end.
func (es *events) begin(kind, to string) (end func()) {
	e := &event{what: kind + " " + to, from: time.Now()}
	es.mu.Lock()
	defer es.mu.Unlock()
	es.all = append(es.all, e)
	es.counts[kind]++
	return func() {
		es.mu.Lock()
		defer es.mu.Unlock()
		e.to = time.Now()
	}
}

// between returns the events in a period.
func (es *events) between(from, to time.Time) (lines []string) {
	es.mu.Lock()
	defer es.mu.Unlock()
	for _, e := range es.all {
		if e.from.Before(to) && (e.to.IsZero() || e.to.After(from)) {
			lines = append(lines, fmt.Sprintf("%s  ! %s, until %s", clock(e.from), e.what, clock(e.to)))
		}
	}
	return lines
}

// count returns the number of events of each kind.
func (es *events) count() map[string]int {
	es.mu.Lock()
	defer es.mu.Unlock()
	counts := make(map[string]int, len(es.counts))
	for kind, n := range es.counts {
		counts[kind] = n
	}
	return counts
}
