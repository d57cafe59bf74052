package wiretest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The bytes that pass are right while the rate changes.
func TestSchedule_RateChanges(t *testing.T) {
	s := newSchedule(Lane{Rate: 1000, Changes: []Change{
		{At: 20 * time.Second, Rate: -1},
		{At: 10 * time.Second, Rate: 100},
	}})
	for _, c := range []struct {
		at   float64 // seconds
		n    int
		want float64
	}{
		{0, 0, 0},
		{0, 1000, 1},
		{9, 1000, 10},
		{9, 1100, 11},   // a tenth of it at the second rate
		{5, 5500, 15},   // half of the time
		{12, 100, 13},   // all of it at the second rate
		{9, 2000, 20},   // to the end of it
		{9, 100000, 20}, // the rest has no limit
		{30, 1 << 30, 30},
	} {
		at := time.Duration(c.at * float64(time.Second))
		require.Equal(t, time.Duration(c.want*float64(time.Second)), s.passed(at, c.n), "%d bytes at %v", c.n, at)
	}
}

// The size of a burst grows with the rate.
func TestSchedule_BurstOfRate(t *testing.T) {
	for rate, want := range map[int]int{1: 1448, 1_000_000: 1448, 100_000_000: 10_000, 1 << 30: 64 << 10, 0: 64 << 10} {
		require.Equal(t, want, Change{Rate: rate}.piece(), "%d B/s", rate)
	}
}
