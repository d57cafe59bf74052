package piping

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestQuestion_Transitions lists the result of each step for each question. no is not possible.
func TestQuestion_Transitions(t *testing.T) {
	const no = question(99)
	steps := []step{askerComes, placeTaken, placeSkipped, askDeparts, creditComes, allowComes, allowDeclined, blockSent, askerLeaves}
	for _, row := range []struct {
		from question
		to   [9]question
	}{
		{idle, [9]question{wanted, no, no, no, no, no, no, no, no}},
		{wanted, [9]question{no, placed, no, no, no, no, no, idle, idle}},
		{placed, [9]question{no, no, wanted, standing, no, no, no, idle, idle}},
		{standing, [9]question{no, no, no, no, wanted, allowed, wanted, orphaned, orphaned}},
		{orphaned, [9]question{standing, no, no, no, idle, no, idle, no, no}},
		{allowed, [9]question{no, no, no, no, no, no, no, idle, idle}},
	} {
		for i, s := range steps {
			to, ok := row.from.next(s)
			if row.to[i] == no {
				require.False(t, ok, "step %d of question %d", s, row.from)
				a := asking{question: row.from}
				a.step(s)
				require.Equal(t, row.from, a.question, "it changes nothing")
				continue
			}
			require.True(t, ok, "step %d of question %d", s, row.from)
			require.Equal(t, row.to[i], to, "step %d of question %d", s, row.from)
		}
	}
	_, ok := idle.next(99)
	require.False(t, ok, "an unknown step")
}

// TestRefund_DueOnce checks the refund of an Allow that was not used, or was used for a dropped
// Block.
func TestRefund_DueOnce(t *testing.T) {
	var a asking
	var u inflightBlocks
	a.begin(100)
	require.False(t, a.begin(200), "there is an asker")
	require.True(t, a.place(&u))
	total, ok := a.reach(50, 60)
	require.True(t, ok)
	require.EqualValues(t, 150, total)
	require.False(t, a.allow(50, 150), "it is for the asker")

	a.use()
	require.True(t, a.drop(), "the Block was dropped, and the Allow has to be given back")
	require.False(t, a.drop(), "once")
	a.places--
	total, ok = a.reach(50, 60)
	require.True(t, ok)
	require.EqualValues(t, 50, total, "the departed cost, and no more")
	_, ok = a.reach(50, 60)
	require.False(t, ok, "nothing is left to be said")
}

func TestAsk_WaitsForUnderWay(t *testing.T) {
	var a asking
	var u inflightBlocks
	a.begin(100)
	u.begin()
	u.begin()
	require.False(t, a.place(&u))
	require.False(t, u.end(), "another is under way")
	require.True(t, u.end(), "the last one wakes the asker")
	u.calmLocked()
	require.True(t, a.place(&u))
	require.False(t, a.place(&u), "once")
}
