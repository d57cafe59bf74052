package carrier

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestState_Transitions(t *testing.T) {
	const none = State(255)
	table := map[State]map[carrierEvent]State{
		Attached:  {lost: Losing, ended: Closing, claimed: none, resent: none},
		Losing:    {halted: Leaving, ended: Closing, claimed: none, resent: none},
		Leaving:   {parked: Away, ended: Closing, claimed: none},
		Away:      {claimed: Returning, ended: Closing},
		Returning: {attached: Resending, parked: Away, ended: Closing, claimed: none},
		Resending: {resent: Attached, lost: Losing, ended: Closing, claimed: none},
		Closing: {lost: none, halted: none, parked: none, claimed: none, attached: none, resent: none,
			ended: none, finished: Closed},
		Closed: {lost: none, halted: none, parked: none, claimed: none, attached: none, resent: none,
			ended: none, finished: none},
	}
	for from := Attached; from <= Closed; from++ {
		for e := lost; e <= finished; e++ {
			to, allowed := table[from][e]
			if !allowed {
				require.PanicsWithValue(t, fmt.Sprintf("BUG: carrier %v: %v", from, e), func() { from.next(e) })
				continue
			}
			got, ok := from.next(e)
			require.Equal(t, to != none, ok, "%v: %v", from, e)
			if ok {
				require.Equal(t, to, got, "%v: %v", from, e)
			} else {
				require.Equal(t, from, got, "%v: %v changes nothing", from, e)
			}
		}
	}
}

func TestSignal_AllocatesLazily(t *testing.T) {
	var early, late signal
	waits := early.fired()
	select {
	case <-waits:
		t.Fatal("it was not fired yet")
	default:
	}
	early.fire()
	<-waits
	<-early.fired()
	require.Zero(t, testing.AllocsPerRun(10, func() { late = signal{}; late.fire(); <-late.fired() }))
}
