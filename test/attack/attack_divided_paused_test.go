package attack

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// An application pauses its pipe while a large Block arrives. Another application waits for a large
// Block on its own pipe.
func TestDivided_BesidePaused(t *testing.T) {
	const size = 4<<20 - 2000
	synctest.Test(t, func(t *testing.T) {
		d := newDividing(t)
		paused := d.opens(0, 61, size)
		synctest.Wait()
		(<-d.handlers).StopReading()
		paused.completes()
		synctest.Wait()
		b := d.opens(2, 61, size)
		synctest.Wait()
		limits, _, _ := d.hears(1)
		require.Greater(t, limits[0], uint64(size), "its application has waited")
		require.Greater(t, limits[2], uint64(size), "the paused pipe keeps the room from it")
		b.completes()
		synctest.Wait()
		_, closed, _ := d.hears(2)
		require.Contains(t, closed, uint64(2))
	})
}
