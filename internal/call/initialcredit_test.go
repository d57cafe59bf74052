package call

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInitialCredit_Take(t *testing.T) {
	c := &initialCredit{limit: 1_000_000}
	require.EqualValues(t, 61_440, c.take(4096), "a window of 64 KiB")
	require.Zero(t, c.take(64<<10), "the guaranteed credit is as much")
	total := uint64(61_440)
	for range 500 {
		total += c.take(4096)
	}
	require.LessOrEqual(t, total, uint64(1_000_000))
	require.Greater(t, total, uint64(999_900), "each takes an eighth of what is left")
	require.Zero(t, c.take(4096))
	c.giveBack(80_000)
	require.EqualValues(t, 10_000, c.take(4096), "an Open that was not sent has taken nothing")
	c.grant(5)
	require.EqualValues(t, 8_750, c.take(4096), "totals never shrink")
	c.grant(2_000_000)
	require.EqualValues(t, 61_440, c.take(4096))
}

func TestInitialCredit_None(t *testing.T) {
	var c *initialCredit
	c.grant(1_000_000)
	require.Zero(t, c.take(512))
	c.giveBack(0)
}
