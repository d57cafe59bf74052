package asterisque

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// How long a test waits at most for workers to be done, and how often it looks.
const (
	waitForWorkers = 2 * time.Minute
	tick           = time.Millisecond
)

// TestWorkersEndAlsoAtTheMomentOfATrim ends them when the timer has fired, and its function has yet
// to begin.
func TestWorkersEndAlsoAtTheMomentOfATrim(t *testing.T) {
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
