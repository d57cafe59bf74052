package buffer

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAllocated_MatchesRuntime fails if another version of Go has other sizes.
func TestAllocated_MatchesRuntime(t *testing.T) {
	require.Zero(t, Allocated(0))
	all := make([]byte, 80<<10)
	for n := 1; n < len(all); n += 1 + n/500 {
		require.Equal(t, cap(append([]byte(nil), all[:n]...)), Allocated(n), "%d", n)
		require.Equal(t, cap(bytes.Clone(all[:n])), Allocated(n), "%d", n)
	}
	for _, n := range []int{8, 1024, 1025, 1152, 32 << 10, 32<<10 + 1, 40 << 10} {
		require.Equal(t, cap(append([]byte(nil), all[:n]...)), Allocated(n), "%d", n)
	}
}

func TestClass_IsTheSmallestThatFits(t *testing.T) {
	require.Equal(t, Least, classSize(0))
	require.Equal(t, Most, classSize(classes-1))
	for i := 1; i < classes; i++ {
		before, size := classSize(i-1), classSize(i)
		require.Greater(t, size, before)
		require.LessOrEqual(t, steps*size, (steps+1)*before)
		require.Equal(t, i, class(before+1))
		require.Equal(t, i, class(size), "it is given back to where it was taken")
	}
}
