package fifo_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/fifo"
	"github.com/asterisque-go/asterisque/internal/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestQueue_MatchesSlice(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var q fifo.Queue[int]
	var model []int
	for i := range 100_000 {
		switch n := rnd.IntN(100); {
		case n < 50+i/10_000%3: // longer, then shorter
			q.Push(i)
			model = append(model, i)
		case n == 99:
			require.Equal(t, len(model), len(q.Reset()))
			model = nil
		case len(model) > 0:
			require.Equal(t, model[0], *q.Peek())
			require.Equal(t, model[0], q.Pop())
			model = model[1:]
		}
		require.Equal(t, len(model), q.Len())
	}
}

func TestQueue_DropsReferences(t *testing.T) {
	var q fifo.Queue[*int]
	for range 3 {
		q.Push(new(int))
	}
	first := q.Peek()
	q.Pop()
	require.Nil(t, *first, "a popped slot keeps nothing alive")
}

func TestFilter_KeepsOrder(t *testing.T) {
	var q fifo.Queue[int]
	for i := range 100 {
		q.Push(i)
	}
	for range 30 {
		q.Pop()
	}
	require.Equal(t, 35, q.Filter(func(i *int) bool { return *i%2 == 0 }))
	require.Equal(t, 35, q.Len())
	for i := 30; i < 100; i += 2 {
		require.Equal(t, i, q.Pop())
	}
}
