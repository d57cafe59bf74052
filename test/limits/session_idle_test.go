package limits

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
)

// idlePairs returns n sessions over wires within the program, dialling nodes first.
func idlePairs(t testing.TB, n int, opts ...asterisque.Option) (here, there *asterisque.Node) {
	here, there = asterisque.NewNode(opts...), asterisque.NewNode(opts...)
	t.Cleanup(func() { here.Close(); there.Close() })
	for range n {
		asterisquetest.ConnectNodes(t, here, there)
	}
	return here, there
}

// Liveness needs no goroutine per session.
func TestIdle_LivenessGoroutines(t *testing.T) {
	const pairs, few = 100, 5 // goroutines of the test itself
	count := func(opts ...asterisque.Option) int {
		before := runtime.NumGoroutine()
		here, there := idlePairs(t, pairs, opts...)
		testkit.Settled(t, func() bool { return runtime.NumGoroutine() <= before+2*pairs+few })
		n := runtime.NumGoroutine() - before
		here.Close()
		there.Close()
		testkit.Settled(t, func() bool { return runtime.NumGoroutine() <= before+few })
		return n
	}
	require.LessOrEqual(t, count(asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1})), 2*pairs+few, "one that reads, for each end")
	require.LessOrEqual(t, count(), 2*pairs+few)
	require.LessOrEqual(t, count(asterisque.WithResume(asterisque.Resume{For: time.Minute})), 2*pairs+few)
}

// TestIdle_ReaderMissesNothing checks every 1.25 ms, and may find the session idle for a moment,
// even in the middle of a frame.
func TestIdle_ReaderMissesNothing(t *testing.T) {
	often := asterisque.WithTimeouts(asterisque.Timeouts{Ping: 10 * time.Millisecond, Silence: 20 * time.Second})
	here, there := asterisque.NewNode(often), asterisque.NewNode(often, asterisque.WithService(testkit.EchoService()))
	t.Cleanup(func() { here.Close(); there.Close() })
	s, _ := testkit.ConnectNodes(t, here, there)
	large := strings.Repeat("x", 200_000)
	for i := range 300 {
		text := large[:i*i*2]
		result, err := testkit.Echo.Call(testkit.Background, s, text)
		require.NoError(t, err)
		require.True(t, result == text)
		time.Sleep(time.Duration(i%8) * 500 * time.Microsecond) //nolint:forbidigo // some looks
	}
}

// TestIdle_TenThousandSessions reports the cost of idle sessions with a Ping each second, fifteen
// times the default rate.
func TestIdle_TenThousandSessions(t *testing.T) {
	if !*testkit.Soak {
		t.Skip("-soak measures")
	}
	const pairs = 10_000
	for _, interval := range []time.Duration{-1, 15 * time.Second, time.Second} {
		here, there := idlePairs(t, pairs, asterisque.WithTimeouts(asterisque.Timeouts{Ping: interval, Silence: 10 * time.Minute}))
		weightest.Heap() // collected
		begin, used := time.Now(), testkit.CPUTime(t)
		time.Sleep(max(10*time.Second, 2*interval)) //nolint:forbidigo // measured time
		took := time.Since(begin)
		t.Logf("%d pairs, ping interval %v: %.2f %% of a core over %v", pairs, interval, 100*float64(testkit.CPUTime(t)-used)/float64(took), took.Round(time.Second))
		here.Close()
		there.Close()
	}
}

// BenchmarkIdleSessions reports the CPU time of 10,000 idle pairs of sessions, in percent of a
// core. One operation is one second.
func BenchmarkIdleSessions(b *testing.B) {
	const pairs = 10_000
	idlePairs(b, pairs)
	weightest.Heap()
	b.ResetTimer()
	begin, used := time.Now(), testkit.CPUTime(b)
	for range b.N {
		time.Sleep(time.Second) //nolint:forbidigo // measured time
	}
	b.ReportMetric(100*float64(testkit.CPUTime(b)-used)/float64(time.Since(begin)), "%core")
	b.ReportMetric(0, "ns/op")
}
