package jobqueue_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

func TestQueueResult_NoLeader(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		refused := new(atomic.Bool)
		c := newBookings(t).customer(withOutcomes(func(kv jetstream.KeyValue) jetstream.KeyValue {
			return &leaderless{kv, refused}
		}))
		r := posts(t, c, 1, withDeadline(time.Now().Add(2*time.Second)))
		_, err := results(t, c, r)
		require.ErrorIs(t, err, asterisque.ErrExpired)
		require.True(t, refused.Load())
	})
}

// register counts the runs of each call by its number.
type register struct {
	mu   sync.Mutex
	runs map[int]int    // guarded by mu, as by
	by   map[string]int // calls of each node
}

// at returns a handler that records the runs on a node.
func (r *register) at(id string) bookingtest.Handler {
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
