package asterisque

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRough_Precision bounds the error of rounding by a thousandth.
func TestRough_Precision(t *testing.T) {
	for n := 0; n < 1<<30; n += 1 + n/777 {
		got := roughly(n).bytes()
		require.GreaterOrEqual(t, got, n)
		require.LessOrEqual(t, got, n+n/1000)
	}
	require.Equal(t, 1<<30, roughly(math.MaxInt).bytes())
	require.Zero(t, roughly(-1).bytes())
}

// TestExpansion_NoOverflow has bounds beyond the range of an int of 32 bits.
func TestExpansion_NoOverflow(t *testing.T) {
	e := expansion{times: 1 << 30, plus: 1 << 20}
	require.Equal(t, 1<<20, e.of(0))
	require.Positive(t, e.of(1<<30))
}
