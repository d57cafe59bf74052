package asterisque

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The longest wait of a test for workers, and the interval of its checks.
const (
	waitForWorkers = 2 * time.Minute
	tick           = time.Millisecond
)

// TestWorkers_EndDuringTrim ends the workers when the timer has fired, before its function begins.
func TestWorkers_EndDuringTrim(t *testing.T) {
	w := new(workers)
	for range 3 {
		w.idle = append(w.idle, &worker{shifts: make(chan shift, 1)})
	}
	w.fewest, w.timer = 2, time.AfterFunc(time.Hour, w.trim)
	w.end()
	require.NotPanics(t, w.trim)
	require.Empty(t, w.idle)
	require.Nil(t, w.timer)
}
