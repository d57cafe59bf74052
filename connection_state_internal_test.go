package asterisque

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestConnection_States compares the transitions with a table.
func TestConnection_States(t *testing.T) {
	events := []connectionEvent{sessionUp, sessionDown, connectionOver}
	const never = ConnectionState(99)
	table := map[ConnectionState][]ConnectionState{ // by event
		connecting:   {Connected, never, Lost},
		Connected:    {never, Reconnecting, Lost},
		Reconnecting: {Connected, never, Lost},
		Lost:         {never, never, never},
	}
	for from, row := range table {
		for i, e := range events {
			t.Run(fmt.Sprint(from, " ", e), func(t *testing.T) {
				want, may := row[i], row[i] != never
				if !may {
					want = from
				}
				got, ok := from.next(e)
				require.Equal(t, may, ok)
				require.Equal(t, want, got)
			})
		}
	}
	require.Equal(t, "state 7", ConnectionState(7).String())
}
