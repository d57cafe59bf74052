package asterisque

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKept_Closed checks that a closed set accepts no elements.
func TestKept_Closed(t *testing.T) {
	var k kept[int]
	require.Empty(t, k.list())
	require.True(t, k.add(1))
	require.True(t, k.add(2))
	require.True(t, k.add(2), "it is a set")
	k.remove(1)
	k.remove(3)
	require.Equal(t, []int{2}, k.list())
	require.False(t, k.isClosed())
	require.Equal(t, []int{2}, k.close())
	require.True(t, k.isClosed())
	require.False(t, k.add(4))
	require.Equal(t, []int{2}, k.close(), "until it is removed")
	k.remove(2)
	require.Empty(t, k.close())
}
