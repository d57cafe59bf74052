package buffer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
