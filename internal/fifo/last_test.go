package fifo_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/fifo"
)

func TestQueue_MatchesSliceBothEnds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var q fifo.Queue[int]
	var model []int
	for i := range 100_000 {
		switch n := rnd.IntN(100); {
		case n < 50+i/10_000%3: // longer, then shorter
			q.Push(i)
			model = append(model, i)
		case n == 99:
			odd := rnd.IntN(2)
			var kept []int
			for _, v := range model {
				if v%2 == odd {
					kept = append(kept, v)
				}
			}
			require.Equal(t, len(model)-len(kept), q.Filter(func(v *int) bool { return *v%2 == odd }))
			model = kept
		case len(model) == 0:
		case n < 75:
			require.Equal(t, model[0], q.Pop())
			model = model[1:]
		default:
			require.Equal(t, model[len(model)-1], q.PopLast())
			model = model[:len(model)-1]
		}
		require.Equal(t, len(model), q.Len())
	}
}

func TestPopLast_DropsReference(t *testing.T) {
	var q fifo.Queue[*int]
	for range 4 {
		q.Push(new(int))
	}
	q.Pop()
	second := q.Peek()
	q.PopLast()
	q.PopLast()
	require.NotNil(t, *second)
	q.PopLast()
	require.Nil(t, *second, "a slot that is empty keeps nothing alive")
	require.Zero(t, q.Len())
	q.Push(new(int))
	require.NotNil(t, *q.Peek())
}
