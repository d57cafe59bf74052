package attack

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Watch counts the goroutines beyond those of its start.
type Watch struct {
	t      testing.TB
	before int
	most   atomic.Int64
}

// NewWatch waits until the goroutines of other tests have ended, and starts to count.
func NewWatch(t testing.TB) *Watch {
	t.Helper()
	few := func() bool { return runtime.NumGoroutine() < 10 }
	require.Eventually(t, few, 2*time.Minute, time.Millisecond)
	return &Watch{t: t, before: runtime.NumGoroutine()}
}

// Look returns the number of goroutines, and records it. runtime.NumGoroutine is far too high now
// and then while goroutines start and end, so Look counts with the world stopped.
func (w *Watch) Look() int {
	n, _ := runtime.GoroutineProfile(make([]runtime.StackRecord, 1))
	n -= w.before
	most := w.most.Load()
	for int64(n) > most && !w.most.CompareAndSwap(most, int64(n)) {
		most = w.most.Load()
	}
	return n
}

// Most returns the highest number of a Look.
func (w *Watch) Most() int { return int(w.most.Load()) }

// LongPath takes 50 ms, like packets of a distant peer, and calls Look meanwhile.
func (w *Watch) LongPath() {
	for range 10 {
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // the time of the path itself
		w.Look()
	}
}

// Quiet waits until the number of goroutines is nearly that of the start.
func (w *Watch) Quiet() {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return w.Look() < 20 }, 2*time.Minute, time.Millisecond)
	Bounded(w.t, "the same, goroutines after the deadline", w.Look(), 20)
}
