package asterisque

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHandshake_States compares the transitions with a table.
func TestHandshake_States(t *testing.T) {
	events := []handshakeEvent{answers, agrees, rejects, timeOver, placeLost, nodeCloses}
	// final states
	over := []handshakeState{agreed, rejected, timedOut, displaced, abandoned}
	const never = handshakeState(99)
	table := map[handshakeState][]handshakeState{ // by event; never: the event comes too late
		exchanging: {answering, agreed, rejected, timedOut, displaced, abandoned},
		answering:  {never, agreed, rejected, timedOut, displaced, abandoned},
	}
	for _, s := range over {
		table[s] = []handshakeState{never, never, never, never, never, never}
	}
	for from, row := range table {
		for i, e := range events {
			t.Run(fmt.Sprint(from, " ", e), func(t *testing.T) {
				want, inTime := row[i], row[i] != never
				if !inTime {
					want = from
				}
				got, ok := from.next(e)
				require.Equal(t, inTime, ok)
				require.Equal(t, want, got)

				var h handshakeStatus
				h.state.Store(uint32(from))
				require.Equal(t, inTime, h.move(e))
				require.Equal(t, want, h.now())
			})
		}
	}
}
