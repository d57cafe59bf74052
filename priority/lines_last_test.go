package priority_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/priority"
)

// TestLines_MatchModelBothEnds takes from the front, from the end and from the middle.
func TestLines_MatchModelBothEnds(t *testing.T) {
	type item struct {
		p priority.Priority
		v int
	}
	for _, spread := range []int{1, 3, 256} { // priorities
		var l priority.Lines[int]
		var model []item // by priority, and then arrival
		rnd := rand.New(rand.NewPCG(5, uint64(spread)))
		for i := range 20_000 {
			p := priority.Priority(rnd.IntN(spread) - spread/2)
			switch n := rnd.IntN(100); {
			case n < 55:
				l.Push(p, i)
				at := slices.IndexFunc(model, func(m item) bool { return m.p < p })
				if at < 0 {
					at = len(model)
				}
				model = slices.Insert(model, at, item{p, i})
			case n < 75:
				next, first, waits := l.Peek()
				v, ok := l.Pop()
				require.Equal(t, len(model) > 0, ok)
				require.Equal(t, ok, waits)
				if ok {
					require.Equal(t, model[0], item{next, first})
					require.Equal(t, model[0].v, v)
					model = model[1:]
				}
			case n < 99:
				v, ok := l.PopLast(p)
				last := len(model) - 1
				require.Equal(t, last >= 0 && model[last].p < p, ok)
				if ok {
					require.Equal(t, model[last].v, v)
					model = model[:last]
				}
			default:
				keep := rnd.IntN(3) // 0: nothing
				l.Filter(func(v int) bool { return keep > 0 && v%3 != keep })
				model = slices.DeleteFunc(model, func(m item) bool { return keep == 0 || m.v%3 == keep })
			}
			require.Equal(t, len(model), l.Len())
		}
	}
}

func TestPopLast_BelowItsBound(t *testing.T) {
	var l priority.Lines[string]
	_, ok := l.PopLast(priority.Max)
	require.False(t, ok, "nothing waits")
	l.Push(priority.Max, "urgent")
	l.Push(0, "early")
	l.Push(0, "late")
	l.Push(priority.Min, "least")
	_, ok = l.PopLast(priority.Min)
	require.False(t, ok, "nothing is below the lowest")
	for _, want := range []string{"least", "late", "early"} {
		v, ok := l.PopLast(1)
		require.True(t, ok)
		require.Equal(t, want, v)
	}
	_, ok = l.PopLast(priority.Max)
	require.False(t, ok, "an equal is not below")
	v, ok := l.Pop()
	require.True(t, ok)
	require.Equal(t, "urgent", v)
}
