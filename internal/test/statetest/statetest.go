// Package statetest compares the transitions of a state machine with a table.
package statetest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Steps are the states that follow one state, by event. Missing events are impossible.
type Steps[S, E ~uint8] map[S]map[E]S

// Check compares next with the steps, for all states and events from 0 to the last ones. An
// impossible event may return any state.
func (want Steps[S, E]) Check(t *testing.T, lastState S, lastEvent E, next func(S, E) (S, bool)) {
	t.Helper()
	for s := S(0); s <= lastState; s++ {
		for e := E(0); e <= lastEvent; e++ {
			to, can := want[s][e]
			got, ok := next(s, e)
			require.Equal(t, can, ok, "event %v in state %v", e, s)
			if can {
				require.Equal(t, to, got, "event %v in state %v", e, s)
			}
		}
	}
}
