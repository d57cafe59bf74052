package main

import (
	"context"
	"strings"
	"sync"

	"github.com/asterisque-go/asterisque/cluster"
)

// roster has the agents in the cluster.
type roster struct {
	mu  sync.Mutex
	ids map[string]bool // guarded by mu
}

// follow keeps it current until ctx ends. During an outage of NATS it stays unchanged.
func (r *roster) follow(ctx context.Context, c *cluster.Cluster) {
	for change, err := range c.Watch(ctx, agentsName) {
		if err == nil {
			r.take(change)
		}
	}
}

func (r *roster) take(change cluster.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil {
		r.ids = make(map[string]bool)
	}
	switch change.Kind {
	case cluster.Left, cluster.Lost:
		delete(r.ids, change.Member.ID)
	default:
		r.ids[change.Member.ID] = true
	}
}

// of returns the number of agents of a depot. The id of the depot is a prefix of theirs.
func (r *roster) of(depot string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.ids {
		if strings.HasPrefix(id, depot+"-") {
			n++
		}
	}
	return n
}
