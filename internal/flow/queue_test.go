package flow_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/priority"
)

func TestQueue_Empty(t *testing.T) {
	var q flow.Queue
	require.Nil(t, q.First())
	require.Zero(t, q.Len())
	require.True(t, q.Passes(priority.Min))
	require.False(t, q.Remove(new(flow.Waiter)))
}

func TestQueue_Passes(t *testing.T) {
	var q flow.Queue
	q.Push(&flow.Waiter{Priority: 3})
	q.Push(&flow.Waiter{Priority: -2})
	for p, want := range map[priority.Priority]bool{-3: false, -2: false, 2: false, 3: false, 4: true} {
		require.Equal(t, want, q.Passes(p), "%d", p)
	}
}

func TestQueue_RemoveFromOther(t *testing.T) {
	var q, other flow.Queue
	w := new(flow.Waiter)
	q.Push(w)
	require.False(t, other.Remove(w))
	require.True(t, q.Remove(w))
	require.False(t, q.Remove(w), "it is gone")
	other.Push(w)
	require.Equal(t, w, other.First(), "a waiter that has left may wait again")
}

// The order is that of a sorted list, whatever comes and goes.
func TestQueue_Order(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var q flow.Queue
	var model []*flow.Waiter // sorted
	for step := range 20_000 {
		switch at := rnd.IntN(len(model) + 1); {
		case rnd.IntN(2) == 0 || len(model) == 0:
			w := &flow.Waiter{Priority: priority.Priority(rnd.IntN(5) - 2), Bytes: step}
			q.Push(w)
			behind := slices.IndexFunc(model, func(o *flow.Waiter) bool { return o.Priority < w.Priority })
			if behind < 0 {
				behind = len(model)
			}
			model = slices.Insert(model, behind, w)
		case at == len(model):
			at = 0
			fallthrough
		default:
			require.True(t, q.Remove(model[at]))
			model = slices.Delete(model, at, at+1)
		}
		require.Equal(t, len(model), q.Len())
		if len(model) == 0 {
			require.Nil(t, q.First())
			continue
		}
		require.Same(t, model[0], q.First())
	}
}

func BenchmarkQueue_ManyWaiters(b *testing.B) {
	var q flow.Queue
	all := make([]flow.Waiter, 100_000)
	for i := range all {
		q.Push(&all[i])
	}
	for b.Loop() {
		w := q.First()
		q.Remove(w)
		q.Push(w)
	}
}
