package cluster

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// register counts how often a call was run for each number.
type register struct {
	mu   sync.Mutex
	runs map[int]int    // guarded by mu, as by
	by   map[string]int // calls of each node
}

// at returns what a node does that enters its calls.
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

// times returns how often the call of a number was run.
func (r *register) times(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runs[n]
}

// requireOnce expects that each call below n ran once, and none else.
func (r *register) requireOnce(t testing.TB, n int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Len(t, r.runs, n)
	for k, times := range r.runs {
		require.Equal(t, 1, times, "call %d", k)
	}
}
