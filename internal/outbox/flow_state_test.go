package outbox

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/priority"
)

var (
	allStates = map[flowState]string{
		never: "never", unsent: "unsent", unsentHalfClosed: "unsentHalfClosed", unsentClosing: "unsentClosing",
		open: "open", halfClosed: "halfClosed", closing: "closing", cancelled: "cancelled",
	}
	allEvents = map[flowEvent]string{
		putOpen: "putOpen", putBlock: "putBlock", putEnd: "putEnd", putControl: "putControl", putClose: "putClose",
		openDeparts: "openDeparts", openDropped: "openDropped", cancel: "cancel", finish: "finish",
	}
)

func TestFlowState_Transitions(t *testing.T) {
	// the next state, by event; "-" is not allowed
	table := []struct {
		from flowState
		next string
	}{
		//                 putOpen, putBlock, putEnd, putControl, putClose, openDeparts, openDropped, cancel, finish
		{unsent, "unsent unsent unsentHalfClosed unsent unsentClosing open cancelled cancelled cancelled"},
		{unsentHalfClosed, "- - - unsentHalfClosed unsentClosing halfClosed cancelled cancelled cancelled"},
		{unsentClosing, "- - - - - closing cancelled cancelled cancelled"},
		{open, "- open halfClosed open closing - - open closing"},
		{halfClosed, "- - - halfClosed closing - - halfClosed closing"},
		{closing, "- - - - - - - closing closing"},
		{cancelled, "- - - - - - - cancelled cancelled"},
		{never, "- - - - - - - - -"},
	}
	require.Len(t, table, int(flowStates))
	require.Len(t, allStates, int(flowStates))
	require.Len(t, allEvents, int(flowEvents))
	for _, c := range table {
		got := ""
		for e := range flowEvents {
			name := "-"
			if next, ok := c.from.next(e); ok {
				name = allStates[next]
			}
			got += " " + name
		}
		require.Equal(t, " "+c.next, got, allStates[c.from])
	}
}

func TestFlowState_Invariants(t *testing.T) {
	for from, name := range allStates {
		for e, event := range allEvents {
			next, ok := from.next(e)
			if !ok {
				f := Flow{state: from}
				f.apply(e)
				require.Equal(t, from, f.state, "%s, %s: a forbidden event changes nothing", name, event)
				continue
			}
			what := fmt.Sprintf("%s, %s", name, event)
			require.Equal(t, from.departed() || e == openDeparts, next.departed(), "%s: what the peer may know of, it never forgets, and else it learns by the Open", what)
			for _, put := range []flowEvent{putOpen, putBlock, putEnd, putControl, putClose} {
				_, before := from.next(put)
				_, after := next.next(put)
				if e == openDeparts && put == putOpen {
					continue
				}
				require.False(t, after && !before, "%s: a forbidden event stays forbidden", what)
			}
		}
	}
}

func TestFlow_InitialStates(t *testing.T) {
	here, there := NewFlow(priority.Max), AcceptedFlow(priority.Min, 7)
	require.Equal(t, unsent, here.state)
	require.Equal(t, open, there.state)
	require.EqualValues(t, 7, there.ID())
}
