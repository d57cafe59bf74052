package values

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExpansion_NoOverflow has bounds beyond the range of an int of 32 bits.
func TestExpansion_NoOverflow(t *testing.T) {
	e := Expansion{Times: 1 << 30, Plus: 1 << 20}
	require.Equal(t, 1<<20, e.of(0))
	require.Positive(t, e.of(1<<30))
}
