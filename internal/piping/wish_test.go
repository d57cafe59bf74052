package piping

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
)

// TestAllowance_Transitions lists the result of each step for each allowance.
func TestAllowance_Transitions(t *testing.T) {
	room := flow.NewRoom(&flow.Plan{Large: 1000})
	steps := []func(*wish){
		func(w *wish) { w.depart() },
		func(w *wish) { w.use() },
		func(w *wish) { w.disallow(room, new(deferred)) },
		func(w *wish) { w.recall(room, new(deferred)) },
	}
	for _, row := range []struct {
		from allowance
		to   [4]allowance
	}{
		{notAllowed, [4]allowance{notAllowed, notAllowed, notAllowed, notAllowed}},
		{allowDue, [4]allowance{allowGiven, allowDue, notAllowed, notAllowed}},
		{allowGiven, [4]allowance{allowGiven, allowUsed, notAllowed, notAllowed}},
		{allowUsed, [4]allowance{allowUsed, allowUsed, notAllowed, notAllowed}},
	} {
		for i, step := range steps {
			w := wish{allowance: row.from, allowed: 7}
			step(&w)
			require.Equal(t, row.to[i], w.allowance, "step %d of allowance %d", i, row.from)
		}
	}
	w := wish{total: 7, claim: flow.Waiter{Bytes: 3}}
	w.allow()
	require.Equal(t, allowDue, w.allowance)
	require.Zero(t, w.total, "it is answered")
	require.Zero(t, w.use(), "the Allow has not been sent")
	require.True(t, w.depart())
	require.False(t, w.depart(), "once")
	require.EqualValues(t, 7, w.use())
	require.Zero(t, w.use(), "for one Block")
	w.debt = 0 // which the room has not granted
	w.recall(room, new(deferred))
	require.EqualValues(t, 7, w.total, "the peer's Ask stands")
}
