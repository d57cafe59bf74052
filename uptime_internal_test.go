package asterisque

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestUptime_AgreesWithClock converts moments of the uptime to times of the clock.
func TestUptime_AgreesWithClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := uptime{born: time.Now()}
		require.Positive(t, u.now(), "also at once")
		require.Equal(t, time.Now(), u.timeAt(u.now()))
		time.Sleep(time.Hour)
		require.Equal(t, time.Now(), u.timeAt(u.now()))
	})
}
