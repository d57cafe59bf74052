package resume

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
)

// TestCuts_LeaveNothing compares memory and goroutines before and after many cuts.
func TestCuts_LeaveNothing(t *testing.T) {
	cuts := 40
	if *testkit.Soak {
		cuts = 1000
	}
	for name, opt := range map[string]asterisque.Option{"with resume": asterisque.WithResume(asterisque.Resume{For: time.Minute}), "without": asterisque.WithResume(asterisque.Resume{For: -1})} {
		t.Run(name, func(t *testing.T) {
			conn, wires := testkit.Lasting(t, testkit.EchoService(), opt)
			cut := func(n int) {
				for range n {
					wires.Cut()
					for answered := 0; answered < 2; answered++ {
						if _, err := testkit.Echo.Call(testkit.Background, conn, "x"); err != nil {
							// The call was made on a session that has ended.
							answered = 0
						}
					}
				}
			}
			cut(20)
			before, goroutines := weightest.Heap(), runtime.NumGoroutine()
			begin := time.Now()
			cut(cuts)
			t.Logf("%d cuts in %v: heap %d -> %d bytes, goroutines %d -> %d", cuts, time.Since(begin).Round(time.Millisecond), before, weightest.Heap(), goroutines, runtime.NumGoroutine())
			testkit.Settled(t, func() bool { return runtime.NumGoroutine() <= goroutines+10 })
			if !race.Enabled {
				require.Less(t, weightest.HeldSince(before, 1<<20), 1<<20, "what tests before this one have left may go meanwhile")
			}
		})
	}
}
