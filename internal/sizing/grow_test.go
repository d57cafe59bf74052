package sizing_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/sizing"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
)

// made keeps the results of allocated on the heap.
var made any

// allocated returns the bytes that f allocates: the minimum of some runs, because other goroutines
// allocate, too.
func allocated(f func() any) int {
	least := math.MaxInt
	for range 5 {
		least = min(least, weightest.Allocated(func() { made = f() }))
	}
	return least
}

func TestGrowingMap_MatchesRuntime(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector adds to each object")
	}
	const entry = 16
	for _, n := range []int{9, 14, 15, 28, 29, 100, 500, 896, 1000, 2000, 3000, 5000, 10_000} {
		tally := sizing.NewTally(math.MaxInt)
		var m sizing.GrowingMap
		m.Make(&tally, n, entry)
		require.Equal(t, m.Bytes(), tally.Bytes(), "%d entries", n)
		// two words less for the map, and rounding
		real := allocated(func() any { return make(map[int64]int64, n) }) - sizing.MapSize
		require.GreaterOrEqual(t, m.Bytes()+sizing.MapSize/2, real, "%d entries", n)
		require.LessOrEqual(t, float64(m.Bytes()), 1.1*float64(real)+sizing.MapSize, "%d entries", n)
	}
}

func TestGrowingMap_MatchesMake(t *testing.T) {
	const entry = 16
	for _, n := range []int{9, 14, 15, 28, 29, 100, 896, 1000, 5000} {
		tally := sizing.NewTally(math.MaxInt)
		var made, grown sizing.GrowingMap
		made.Make(&tally, n, entry)
		tally = sizing.NewTally(math.MaxInt)
		for range n {
			grown.Put(&tally, entry)
		}
		require.Equal(t, made.Bytes(), grown.Bytes(), "%d entries", n)
		require.Equal(t, grown.Bytes(), tally.Now(), "%d entries: what it held before is free", n)
	}
}
