package asterisque

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPace_PausesAboveRate pauses only events above the rate.
func TestPace_PausesAboveRate(t *testing.T) {
	var p pace
	now := time.Second
	for range givenUpBurst {
		require.Zero(t, p.pause(now), "at once")
	}
	waited := time.Duration(0)
	const more = 20_000
	for range more {
		d := p.pause(now)
		now += d
		waited += d
	}
	require.InDelta(t, more*givenUpEach, waited, float64(givenUpPause), "at the rate")
	now += 1000 * time.Hour // due wraps meanwhile
	for range givenUpBurst {
		require.Zero(t, p.pause(now), "as many at once again, and no more for a longer rest")
	}
	require.InDelta(t, 0, p.pause(now), float64(givenUpPause))
}
