package limits

import (
	"context"

	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/stream"
)

// latencies makes n calls in sequence, each after a tick if ticks is not nil, and returns their
// median and 99th percentile.
func latencies(t testing.TB, n int, call func() error, ticks ...<-chan time.Time) (p50, p99 time.Duration) {
	t.Helper()
	times := make([]time.Duration, n)
	for i := range times {
		for _, tick := range ticks {
			<-tick
		}
		begin := time.Now()
		require.NoError(t, call())
		times[i] = time.Since(begin)
	}
	slices.Sort(times)
	return times[n/2], times[n*99/100]
}

// BenchmarkStuckReader compares the latency of 64-byte calls on a session with and without a pipe
// with a reader that never reads, and reports the memory that this pipe holds.
func BenchmarkStuckReader(b *testing.B) {
	svc := testkit.EchoService()
	svc.Handle(50, "stream", testkit.WaitForContext)
	dialled, accepted := testkit.Connect(b, svc)
	text := string(make([]byte, 64))
	call := func() error { _, err := testkit.Echo.Call(testkit.Background, dialled, text); return err }
	for b.Loop() {
		_, quiet := latencies(b, 5000, call)
		ctx, cancel := context.WithCancel(testkit.Background)
		p, err := dialled.Open(ctx, 50, nil)
		require.NoError(b, err)
		var senders sync.WaitGroup
		senders.Go(func() { stream.NewWriter(p).ReadFrom(zeros{}) })
		for held := -1; held != accepted.Stats().Inbound.Bytes; { // until it is stuck
			held = accepted.Stats().Inbound.Bytes
			latencies(b, 100, call)
		}
		_, beside := latencies(b, 5000, call)
		b.ReportMetric(float64(quiet.Microseconds()), "p99-quiet-µs")
		b.ReportMetric(float64(beside.Microseconds()), "p99-beside-µs")
		b.ReportMetric(float64(accepted.Stats().Inbound.Bytes), "held-B")
		cancel()
		senders.Wait()
	}
}

// zeros is a Reader without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// BenchmarkShares runs a hundred streams that send as fast as they can, and reports the throughput
// of the slowest and the fastest once all have begun, as fractions of the fair share.
func BenchmarkShares(b *testing.B) {
	for b.Loop() {
		shares := streamShares(b)
		b.ReportMetric(shares[0], "least-share")
		b.ReportMetric(shares[len(shares)-1], "most-share")
	}
}

// streamShares returns the sorted shares of the streams.
func streamShares(t testing.TB) (shares []float64) {
	const streams, warmUp, total = 100, 128 << 20, 1 << 30
	var got [streams]atomic.Int64
	var sum atomic.Int64
	warm, done := make(chan struct{}), make(chan struct{})
	svc := asterisque.NewService()
	svc.Handle(1, "sink", func(ctx context.Context, p *pipe.Pipe, params []byte) ([]byte, error) {
		for {
			b, err := p.Recv(ctx)
			if err != nil {
				return nil, err
			}
			n := int64(len(b.Payload))
			b.Release()
			got[params[0]].Add(n)
			switch now := sum.Add(n); {
			case now >= warmUp && now-n < warmUp:
				close(warm)
			case now >= total && now-n < total:
				close(done)
			}
		}
	})
	dialled, _ := testkit.Connect(t, svc)
	ctx, cancel := context.WithCancel(testkit.Background)
	var senders sync.WaitGroup
	for i := range streams {
		p, err := dialled.Open(ctx, 1, []byte{byte(i)})
		require.NoError(t, err)
		senders.Go(func() { stream.NewWriter(p).ReadFrom(zeros{}) })
	}
	snapshot := func(when <-chan struct{}) (list [streams]int64) {
		<-when
		for i := range got {
			list[i] = got[i].Load()
		}
		return list
	}
	before, after := snapshot(warm), snapshot(done)
	cancel()
	senders.Wait()
	for i := range got {
		shares = append(shares, float64(after[i]-before[i])*streams/(total-warmUp))
	}
	slices.Sort(shares)
	return shares
}

// flood makes a peer send calls as fast as it can, for some time, to a handler that takes a
// millisecond for each. It returns how many calls per second are handled without and with the
// flood, and the queues on either side.
func flood(t testing.TB, limit limits.Limits, opens int, length time.Duration) (capacity, goodput float64, inbound, outbound int) {
	const workers = 8
	var handled atomic.Int64
	svc := asterisque.NewService()
	svc.Handle(1, "slow", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) {
		time.Sleep(time.Millisecond) //nolint:forbidigo // the work that a call is
		handled.Add(1)
		return nil, nil
	})
	there := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: workers}), asterisque.WithLimits(asterisque.Limits{Inbound: limit}))
	here := asterisque.NewNode(asterisque.WithLimits(asterisque.Limits{Outbound: limit}))
	t.Cleanup(func() { here.Close(); there.Close() })
	dialled, accepted := testkit.ConnectNodes(t, here, there)

	rate := func(d time.Duration) float64 {
		begin, count := time.Now(), handled.Load()
		time.Sleep(d) //nolint:forbidigo // measured time
		return float64(handled.Load()-count) / time.Since(begin).Seconds()
	}
	offer := func(callers int, call func(context.Context)) (stop func()) {
		ctx, cancel := context.WithCancel(testkit.Background)
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for ctx.Err() == nil {
					call(ctx)
				}
			})
		}
		return func() { cancel(); wg.Wait() }
	}
	params := make([]byte, 4<<10)
	stop := offer(2*workers, func(ctx context.Context) { dialled.Call(ctx, 1, params) })
	capacity = rate(length)
	stop()
	stop = offer(64, func(ctx context.Context) { // and does not wait for results
		if p, err := dialled.Open(ctx, 1, params); err == nil {
			context.AfterFunc(ctx, func() { p.Abort(nil) })
		}
	})
	goodput = rate(length)
	inbound, outbound = accepted.Stats().Inbound.Bytes, dialled.Stats().Outbound.Bytes
	stop()
	return capacity, goodput, inbound, outbound
}

// A flood of calls is bounded.
func TestFlood_Bounded(t *testing.T) {
	length := 150 * time.Millisecond
	if *testkit.Soak {
		length = 30 * time.Second
	}
	for name, opens := range map[string]int{"with room for Opens": 4096, "without": 0} {
		t.Run(name, func(t *testing.T) {
			limit := limits.Limits{Soft: limits.Amount{Bytes: 4 << 20}, Hard: limits.Amount{Bytes: 8 << 20}}
			capacity, goodput, inbound, outbound := flood(t, limit, opens, length)
			t.Logf("%.0f calls/s of %.0f, %d bytes wait for the handler, %d for the wire", goodput, capacity, inbound, outbound)
			require.Less(t, inbound, limit.Soft.Bytes*11/10)
			require.Less(t, outbound, limit.Soft.Bytes*11/10)
			require.Greater(t, goodput, 0.0)
		})
	}
}
