package piping

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestState_Transitions lists the result of each event for each state. -1 is not allowed.
func TestState_Transitions(t *testing.T) {
	const no = -1
	events := []endEvent{sendBlock, recvBlock, sendEnd, recvEnd, sendStop, recvStop, sendClose, recvClose}
	const both = endedHere | endedThere
	const eh, et, sh, st, ov = int(endedHere), int(endedThere), int(stoppedHere), int(stoppedThere), int(over)
	for _, row := range []struct {
		from endState
		to   [8]int
	}{
		{0, [8]int{0, 0, eh, et, sh, st, ov, ov}},
		{endedHere, [8]int{no, eh, no, eh | et, eh | sh, eh | st, eh | ov, eh | ov}},
		{endedThere, [8]int{et, no, et | eh, no, no, et | st, et | ov, et | ov}},
		{stoppedHere, [8]int{sh, sh, sh | eh, sh | et, no, sh | st, sh | ov, sh | ov}},
		{stoppedThere, [8]int{no, st, st | eh, st | et, st | sh, st, st | ov, st | ov}},
		{both, [8]int{no, no, no, no, no, eh | et | st, eh | et | ov, eh | et | ov}},
		{over, [8]int{no, no, no, no, no, no, no, no}},
		{both | over, [8]int{no, no, no, no, no, no, no, no}},
	} {
		for i, e := range events {
			to, ok := row.from.next(e)
			if row.to[i] == no {
				require.False(t, ok, "event %d in state %b", e, row.from)
			} else {
				require.True(t, ok, "event %d in state %b", e, row.from)
				require.EqualValues(t, row.to[i], to, "event %d in state %b", e, row.from)
			}
		}
	}
	_, ok := endState(0).next(99)
	require.False(t, ok, "an unknown event")
}
