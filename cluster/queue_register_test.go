package cluster

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// register counts the runs of each call by its number.
type register struct {
	mu   sync.Mutex
	runs map[int]int    // guarded by mu, as by
	by   map[string]int // calls of each node
}

// at returns a handler that records the runs on a node.
func (r *register) at(id string) does {
	return func(_ context.Context, n int) (string, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.runs == nil {
			r.runs, r.by = make(map[int]int), make(map[string]int)
		}
		r.runs[n]++
		r.by[id]++
		return id, nil
	}
}

// times returns the number of runs of a call.
func (r *register) times(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runs[n]
}

// requireOnce expects that each call below n ran once, and no other call.
func (r *register) requireOnce(t testing.TB, n int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Len(t, r.runs, n)
	for k, times := range r.runs {
		require.Equal(t, 1, times, "call %d", k)
	}
}
