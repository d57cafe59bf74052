package resume

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// BenchmarkResume is BenchmarkCall on a session with resume and on a session without: the
// difference is the cost of resume. Each run alternates between both, so that both meet the same
// disturbances. The reported figure is the ratio of their times.
func BenchmarkResume(b *testing.B) {
	for _, callers := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			with, _ := testkit.Lasting(b, testkit.EchoService(), asterisque.WithResume(asterisque.Resume{For: time.Minute}))
			without, _ := testkit.Lasting(b, testkit.EchoService())
			text := strings.Repeat("*", 64)
			turn := func(on asterisque.Caller, calls int) time.Duration {
				begin := time.Now()
				share := max(calls/callers, 1)
				done := make(chan error, callers)
				for range callers {
					go func() { // ends with its calls
						for range share {
							if _, err := testkit.Echo.Call(context.Background(), on, text); err != nil {
								done <- err
								return
							}
						}
						done <- nil
					}()
				}
				for range callers {
					require.NoError(b, <-done)
				}
				return time.Since(begin)
			}
			const calls = 20_000
			turn(with, calls)
			turn(without, calls)
			var on, off time.Duration
			b.ResetTimer()
			for range b.N { // each operation is a number of calls on both
				on += turn(with, calls)
				off += turn(without, calls)
			}
			b.ReportMetric(calls*float64(b.N)/on.Seconds(), "calls/s-on")
			b.ReportMetric(calls*float64(b.N)/off.Seconds(), "calls/s-off")
			b.ReportMetric(100*(on.Seconds()/off.Seconds()-1), "%cost")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// TestResume_TakesNoLonger measures from the moment at which the peer can be reached again to the
// first answer: at most a step of the backoff.
func TestResume_TakesNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step, rounds = 100 * time.Millisecond, 50
		there := testkit.NewNode(t, asterisque.WithService(testkit.EchoService()), asterisque.WithResume(asterisque.Resume{For: time.Minute}))
		here := testkit.NewNode(t, asterisque.WithResume(asterisque.Resume{For: time.Minute}))
		var refuses atomic.Bool
		var last *wiretest.Wire
		dial := func(context.Context) (wire.Wire, error) {
			if refuses.Load() {
				return nil, testkit.ErrBroken
			}
			a, b := wire.Pipe()
			go there.Accept(testkit.Background, b) // ends with the handshake
			last = wiretest.Faulty(a, wiretest.Faults{})
			return last, nil
		}
		conn, err := here.Connect(testkit.Background, "", asterisque.ReconnectConfig{First: step, Most: step, Dial: dial})
		require.NoError(t, err)
		defer conn.Close()
		first := conn.Session()
		for range rounds {
			refuses.Store(true)
			last.Cut()
			synctest.Wait()
			require.Equal(t, asterisque.Reconnecting, conn.State())
			fakeclock.Sleep(step) // attempts have failed
			refuses.Store(false)
			begin := time.Now()
			_, err := testkit.Echo.Call(testkit.Background, conn, "")
			require.NoError(t, err)
			require.LessOrEqual(t, time.Since(begin), step*3/2)
		}
		require.Same(t, first, conn.Session())
	})
}
