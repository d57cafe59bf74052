package limits

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/pipe"
)

// TestMemory_IdleSession bounds the memory of an open session that has been silent for an eighth of
// the interval of Pings, both ends and their goroutines together.
func TestMemory_IdleSession(t *testing.T) {
	const sessions, limit = 500, 13_300
	pings := asterisque.WithTimeouts(asterisque.Timeouts{Ping: 2 * time.Second})
	here, there := asterisque.NewNode(pings), asterisque.NewNode(pings, asterisque.WithService(testkit.EchoService()))
	t.Cleanup(func() { here.Close(); there.Close() })
	testkit.ConnectNodes(t, here, there)
	before := weightest.Heap() + testkit.Stacks()
	for range sessions {
		s, _ := testkit.ConnectNodes(t, here, there)
		_, err := testkit.Echo.Call(testkit.Background, s, "used once, and idle from then on")
		require.NoError(t, err)
	}
	each := func() int { return (weightest.Heap() + testkit.Stacks() - before) / sessions }
	t.Logf("%d bytes for each session that was used just now", each())
	if !race.Enabled {
		testkit.Settled(t, func() bool { return each() < limit })
	}
	t.Logf("%d bytes for each idle session", each())
	for _, s := range here.Sessions() {
		_, err := testkit.Echo.Call(testkit.Background, s, "and used again")
		require.NoError(t, err)
	}
}

// TestMemory_TenThousandPipes opens them all at once, and bounds the memory of each idle one, on
// both sides, with its handler's goroutine and without.
func TestMemory_TenThousandPipes(t *testing.T) {
	testkit.SkipRace(t)
	const pipes, limit = 10_000, 950
	svc := asterisque.NewService()
	svc.Handle(50, "stream", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		b, err := p.Recv(ctx)
		return b.Payload, err
	})
	dialled, accepted := testkit.Connect(t, svc, asterisque.WithWorkers(asterisque.Workers{Session: pipes}), asterisque.WithLimits(asterisque.Limits{Inbound: testkit.BytesOf(128<<20, 512<<20)}))
	open := make([]*pipe.Pipe, pipes)
	// The handlers leave as many dead goroutines; new goroutines reuse them.
	goroutine := testkit.Goroutine()
	before := weightest.Heap()
	for i := range open {
		p, err := dialled.Open(testkit.Background, 50, nil)
		require.NoError(t, err)
		open[i] = p
	}
	for accepted.Stats().Running < pipes {
		runtime.Gosched()
	}
	each := weightest.HeldSince(before, pipes*(limit+goroutine)) / pipes
	t.Logf("%d bytes of heap for each idle pipe, both ends, of which the goroutine of its handler has %d", each, goroutine)
	if !race.Enabled {
		require.Less(t, each-goroutine, limit)
	}

	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			for _, p := range open[i*pipes/10 : (i+1)*pipes/10] {
				if err := p.Send(testkit.Background, []byte("wake up")); err != nil {
					t.Error(err)
				}
				if result, err := p.Result(testkit.Background); err != nil || string(result) != "wake up" {
					t.Errorf("got %q, %v", result, err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, 0, dialled.Stats().Pipes)
}

// TestMemory_SessionsReleased opens, uses and closes a thousand sessions. The whole package is
// checked for remaining goroutines.
func TestMemory_SessionsReleased(t *testing.T) {
	here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(testkit.EchoService()))
	t.Cleanup(func() { here.Close(); there.Close() })
	use := func(n int) {
		for range n {
			dialled, accepted := testkit.ConnectNodes(t, here, there)
			_, err := testkit.Echo.Call(testkit.Background, dialled, "once")
			require.NoError(t, err)
			require.NoError(t, dialled.Close())
			<-accepted.Done()
		}
	}
	use(100)
	before, goroutines := weightest.Heap(), runtime.NumGoroutine()
	use(1000)
	for len(there.Sessions()) > 0 {
		runtime.Gosched()
	}
	require.Less(t, weightest.HeldSince(before, 256<<10), 256<<10)
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+10)
}

// TestMemory_AllocsOfCall bounds the allocations of a call, at both ends together.
func TestMemory_AllocsOfCall(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	svc := testkit.EchoService()
	testkit.Raw.Handle(svc, func(_ context.Context, b []byte) ([]byte, error) { return b, nil })
	typed, _ := testkit.Connect(t, svc)
	untyped, _ := testkit.Connect(t, svc, asterisque.WithCodecs(codec.Raw))
	text, bytes := strings.Repeat("*", 64), make([]byte, 64)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() { testkit.Raw.Call(testkit.Background, untyped, bytes) }), 3.0)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() { testkit.Echo.Call(testkit.Background, typed, text) }), 4.0)
}
