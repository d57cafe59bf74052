package flow_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// randomMessage is a message of TestCounter_RandomLimits.
type randomMessage struct {
	flow.Waiter
	told, counted bool
}

// TestCounter_RandomLimits plays random senders while the limits change. Each message is counted or
// refused once, the count is the sum of the counted ones, and no message waits without a reason.
func TestCounter_RandomLimits(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		set := func() limits.Limits {
			soft := 20 + rnd.IntN(100)
			l, err := limits.Limits{Soft: limits.Amount{Bytes: soft}, Hard: limits.Amount{Bytes: soft + 1 + rnd.IntN(100)}}.Check()
			require.NoError(t, err)
			return l
		}
		l := set()
		c := flow.NewCounter(&l, nil)
		c.Share(0.1)
		var waiting, counted []*randomMessage
		settle := func() { // the messages that wait no more
			var still []*randomMessage
			for _, m := range waiting {
				switch {
				case !m.told:
					still = append(still, m)
				case m.counted:
					counted = append(counted, m)
				default:
					require.Greater(t, m.Bytes, c.Limits().Hard.Bytes, "seed %d", seed)
				}
			}
			waiting = still
		}
		take := func(from *[]*randomMessage) *randomMessage {
			i := rnd.IntN(len(*from))
			m := (*from)[i]
			*from = append((*from)[:i:i], (*from)[i+1:]...)
			return m
		}
		for range 400 {
			switch what := rnd.IntN(10); {
			case what < 4:
				m := &randomMessage{}
				m.Waiter = flow.Waiter{Priority: priority.Priority(rnd.IntN(3)), Bytes: 1 + rnd.IntN(80), Granted: func(ok bool) {
					require.False(t, m.told, "seed %d", seed)
					m.told, m.counted = true, ok
				}}
				if waiting = append(waiting, m); c.Acquire(&m.Waiter) {
					m.Granted(true)
				}
			case what < 7 && len(counted) > 0:
				c.Remove(1, take(&counted).Bytes)
			case what < 8 && len(waiting) > 0:
				c.Leave(&take(&waiting).Waiter)
			case what == 8 && rnd.IntN(4) == 0:
				l := set()
				l.Hard.Bytes = max(l.Hard.Bytes, c.Held().Bytes) // otherwise the session ends
				c.SetLimits(l)
			}
			settle()
			held := limits.Amount{Messages: len(counted)}
			for _, m := range counted {
				held.Bytes += m.Bytes
			}
			require.Equal(t, held, c.Held(), "seed %d", seed)
			require.Equal(t, len(waiting) > 0, c.Queued(), "seed %d", seed)
			if len(waiting) > 0 && c.State() < limits.Soft {
				tooLarge := func(m *randomMessage) bool { return held.Bytes+m.Bytes > c.Limits().Hard.Bytes }
				require.True(t, slices.ContainsFunc(waiting, tooLarge), "seed %d: all of them fit", seed)
			}
		}
		c.End()
		settle()
		require.Empty(t, waiting, "seed %d", seed)
		for _, m := range counted {
			c.Remove(1, m.Bytes)
		}
		require.Equal(t, limits.Amount{}, c.Held(), "seed %d", seed)
	}
}
