package attack

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Watch counts goroutines beyond those that were there at first.
type Watch struct {
	t      testing.TB
	before int
	most   atomic.Int64
}

// NewWatch waits for the end of what other tests have left, and begins to count.
func NewWatch(t testing.TB) *Watch {
	t.Helper()
	few := func() bool { return runtime.NumGoroutine() < 10 }
	require.Eventually(t, few, 2*time.Minute, time.Millisecond)
	return &Watch{t: t, before: runtime.NumGoroutine()}
}

// Look returns how many there are, and notes it. runtime.NumGoroutine is far too high now and then
// while they come and go, and so it counts while they stand still.
func (w *Watch) Look() int {
	n, _ := runtime.GoroutineProfile(make([]runtime.StackRecord, 1))
	n -= w.before
	most := w.most.Load()
	for int64(n) > most && !w.most.CompareAndSwap(most, int64(n)) {
		most = w.most.Load()
	}
	return n
}

// Most returns the most that a look has seen.
func (w *Watch) Most() int { return int(w.most.Load()) }

// LongPath takes 50 ms, as packets of a peer far away do, and looks.
func (w *Watch) LongPath() {
	for range 10 {
		time.Sleep(5 * time.Millisecond) // nothing waits for the path
		w.Look()
	}
}

// Quiet waits until there are hardly more goroutines than at first.
func (w *Watch) Quiet() {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return w.Look() < 20 }, 2*time.Minute, time.Millisecond)
	Bounded(w.t, "the same, goroutines after the deadline", w.Look(), 20)
}
