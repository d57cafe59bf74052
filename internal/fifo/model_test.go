package fifo_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/fifo"
)

// TestQueue_AllMethodsMatchSlice uses all methods, with values of which many, few or one fit into a
// chunk.
func TestQueue_AllMethodsMatchSlice(t *testing.T) {
	t.Run("2B", func(t *testing.T) { agrees(t, 400, func(n int) int16 { return int16(n) }) })
	t.Run("pointer", func(t *testing.T) { agrees(t, 400, func(n int) *int { return &n }) })
	t.Run("64B", func(t *testing.T) { agrees(t, 400, func(n int) [8]int { return [8]int{7: n} }) })
	t.Run("400B", func(t *testing.T) { agrees(t, 100, func(n int) [50]int { return [50]int{49: n} }) })
	t.Run("5KiB", func(t *testing.T) { agrees(t, 50, func(n int) [640]int { return [640]int{n} }) })
	t.Run("nothing", func(t *testing.T) { agrees(t, 400, func(int) struct{} { return struct{}{} }) })
}

func agrees[T comparable](t *testing.T, steps int, value func(int) T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	var q fifo.Queue[T]
	var model []T
	for step := range steps {
		most := []int{3, 30, 300, 3000}[rnd.IntN(4)]
		if step%2 == 0 { // phases as long as the queues, so that they grow and shrink
			for range rnd.IntN(most) {
				v := value(rnd.Int())
				q.Push(v)
				model = append(model, v)
			}
		}
		switch rnd.IntN(8) {
		case 0, 1, 2:
			for range min(rnd.IntN(most), len(model)) {
				same(t, model[0], *q.Peek())
				same(t, model[0], q.Pop())
				model = model[1:]
			}
		case 3, 4:
			for range min(rnd.IntN(most), len(model)) {
				same(t, model[len(model)-1], q.PopLast())
				model = model[:len(model)-1]
			}
		case 5, 6:
			share := rnd.IntN(5) // how many of five values stay
			var kept []T
			i := 0
			removed := q.Filter(func(v *T) bool {
				same(t, model[i], *v)
				i++
				if rnd.IntN(4) >= share {
					return false
				}
				kept = append(kept, *v)
				return true
			})
			require.Equal(t, len(model)-len(kept), removed)
			model = kept
		default:
			waited := q.Reset()
			require.Equal(t, len(model), len(waited))
			for i := range model {
				same(t, model[i], waited[i])
			}
			model = nil
		}
		require.Equal(t, len(model), q.Len())
		for i := range model {
			same(t, model[i], *q.At(i))
		}
	}
}

// same is require.Equal for a large number of values.
func same[T comparable](t *testing.T, want, got T) {
	if want != got {
		t.Helper()
		require.FailNow(t, "another value", "%v instead of %v", got, want)
	}
}

func TestQueue_KeepsNoPopped(t *testing.T) {
	const n = 2000 // some chunks
	for name, empty := range map[string]func(q *fifo.Queue[*int]){
		"Pop": func(q *fifo.Queue[*int]) {
			for range n - 1 {
				q.Pop()
			}
		},
		"PopLast": func(q *fifo.Queue[*int]) {
			for range n - 1 {
				q.PopLast()
			}
		},
		"Filter": func(q *fifo.Queue[*int]) {
			i := 0
			q.Filter(func(**int) bool { i++; return i == n/2 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			var q fifo.Queue[*int]
			var slots []**int
			for range n {
				q.Push(new(int))
			}
			for i := range n {
				slots = append(slots, q.At(i))
			}
			empty(&q)
			held := 0
			for _, s := range slots {
				if *s != nil {
					held++
				}
			}
			require.Equal(t, 1, held)
			require.Equal(t, 1, q.Len())
		})
	}
}
