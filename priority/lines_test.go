package priority_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/priority"
)

func TestLines_MatchModel(t *testing.T) {
	var l priority.Lines[int]
	var model []struct {
		p priority.Priority
		v int
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range 20_000 {
		if rnd.IntN(2) == 0 {
			p := priority.Priority(rnd.IntN(256) - 128)
			l.Push(p, i)
			model = append(model, struct {
				p priority.Priority
				v int
			}{p, i})
		} else {
			next := -1
			for j, m := range model {
				if next < 0 || m.p > model[next].p {
					next = j
				}
			}
			v, ok := l.Pop()
			require.Equal(t, next >= 0, ok)
			if ok {
				require.Equal(t, model[next].v, v)
				model = append(model[:next], model[next+1:]...)
			}
		}
		require.Equal(t, len(model), l.Len())
	}
}
