package priority_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/priority"
)

// TestFlow_MatchesModel has few priorities, so that rounds are long and flows leave them at the
// front, in the middle and at the end.
func TestFlow_MatchesModel(t *testing.T) {
	for _, spread := range []int{1, 4, 256} {
		rnd := rand.New(rand.NewPCG(7, uint64(spread)))
		var q priority.Queue[message]
		fs := make([]*priority.Flow[message], 40)
		model := make([][]message, len(fs))
		for i := range fs {
			p := priority.Priority(rnd.IntN(spread) - spread/2)
			fs[i] = &priority.Flow[message]{Priority: p}
		}
		for seq := range 4000 {
			i := rnd.IntN(len(fs))
			switch n := rnd.IntN(1000); {
			case n < 500:
				m := message{i, seq, rnd.IntN(40_000)}
				q.Push(fs[i], m, m.size)
				model[i] = append(model[i], m)
			case n < 550:
				var dropped []message
				q.Clear(fs[i], func(m message) { dropped = append(dropped, m) })
				require.True(t, slices.Equal(model[i], dropped), "%v and not %v", dropped, model[i])
				model[i] = nil
			case n < 560:
				gone := func(m message) bool { return m.flow%5 == i%5 || m.seq%3 == 0 }
				q.Filter(func(m *message) bool { return !gone(*m) })
				for j := range model {
					model[j] = slices.DeleteFunc(model[j], gone)
				}
			default:
				m, ok := q.Pop()
				if !ok {
					break
				}
				require.NotEmpty(t, model[m.flow])
				require.Equal(t, model[m.flow][0], m)
				model[m.flow] = model[m.flow][1:]
				for j := range fs {
					if len(model[j]) > 0 {
						require.LessOrEqual(t, fs[j].Priority, fs[m.flow].Priority)
					}
				}
			}
			total := 0
			for j := range fs {
				require.Equal(t, len(model[j]), fs[j].Len())
				total += len(model[j])
			}
			require.Equal(t, total, q.Len())
		}
	}
}

func TestClear_NextTurnIsLast(t *testing.T) {
	var q priority.Queue[message]
	fs := flows(0, 0, 0)
	for i, f := range fs {
		q.Push(f, message{flow: i}, 10<<10)
	}
	q.Clear(fs[0], func(message) {})
	q.Push(fs[0], message{}, 10<<10)
	var order []int
	for q.Len() > 0 {
		order = append(order, pop(t, &q).flow)
	}
	require.Equal(t, []int{1, 2, 0}, order)
}

func TestFilter_ThenReplace(t *testing.T) {
	var q priority.Queue[message]
	f := flows(0)[0]
	for i := range 3 {
		q.Push(f, message{seq: i}, 1)
	}
	q.Clear(f, func(m message) { q.Push(f, message{seq: 10 + m.seq}, 1) })
	require.Equal(t, 3, q.Len())
	for i := range 3 {
		require.Equal(t, 10+i, pop(t, &q).seq)
	}
}
