package flow

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/priority"
)

func TestQueue_Empty(t *testing.T) {
	var q Queue
	require.Nil(t, q.first())
	require.Zero(t, q.len)
	require.True(t, q.passes(priority.Min))
	require.False(t, q.remove(new(Waiter)))
}

func TestQueue_Passes(t *testing.T) {
	var q Queue
	q.push(&Waiter{Priority: 3})
	q.push(&Waiter{Priority: -2})
	for p, want := range map[priority.Priority]bool{-3: false, -2: false, 2: false, 3: false, 4: true} {
		require.Equal(t, want, q.passes(p), "%d", p)
	}
}

func TestQueue_RemoveFromOther(t *testing.T) {
	var q, other Queue
	w := new(Waiter)
	q.push(w)
	require.False(t, other.remove(w))
	require.True(t, q.remove(w))
	require.False(t, q.remove(w), "it is gone")
	other.push(w)
	require.Equal(t, w, other.first(), "a waiter that has left may wait again")
}

// The order is that of a sorted list, whatever comes and goes.
func TestQueue_Order(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var q Queue
	var model []*Waiter // sorted
	for step := range 20_000 {
		switch at := rnd.IntN(len(model) + 1); {
		case rnd.IntN(2) == 0 || len(model) == 0:
			w := &Waiter{Priority: priority.Priority(rnd.IntN(5) - 2), Bytes: step}
			q.push(w)
			behind := slices.IndexFunc(model, func(o *Waiter) bool { return o.Priority < w.Priority })
			if behind < 0 {
				behind = len(model)
			}
			model = slices.Insert(model, behind, w)
		case at == len(model):
			at = 0
			fallthrough
		default:
			require.True(t, q.remove(model[at]))
			model = slices.Delete(model, at, at+1)
		}
		require.Equal(t, len(model), q.len)
		if len(model) == 0 {
			require.Nil(t, q.first())
			continue
		}
		require.Same(t, model[0], q.first())
	}
}

func BenchmarkQueue_ManyWaiters(b *testing.B) {
	var q Queue
	all := make([]Waiter, 100_000)
	for i := range all {
		q.push(&all[i])
	}
	for b.Loop() {
		w := q.first()
		q.remove(w)
		q.push(w)
	}
}
