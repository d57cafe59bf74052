package lease

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFenceEpochs_LastUsed(t *testing.T) {
	t.Parallel()
	e := newFenceEpochs(2)
	require.Zero(t, e.of("a"))
	require.EqualValues(t, 7, e.note("a", 7))
	require.EqualValues(t, 7, e.note("a", 6), "the highest")
	require.EqualValues(t, 8, e.note("a", 8))
	e.note("b", 1)
	require.EqualValues(t, 8, e.of("a"))
	e.note("c", 2)
	require.Zero(t, e.of("b"), "which was used least")
	e.note("a", 1)
	e.note("d", 3)
	require.Zero(t, e.of("c"))
	require.EqualValues(t, 8, e.of("a"))
	require.Len(t, e.byKey, 2)
}
