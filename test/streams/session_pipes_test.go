package streams

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// Pipes lists the calls on both sides.
func TestPipes_BothSides(t *testing.T) {
	began, gate := make(chan struct{}, 2), make(chan struct{})
	svc := asterisque.NewService()
	hold := asterisque.Func[int, int](20, "hold")
	hold.Handle(svc, func(context.Context, int) (int, error) {
		began <- struct{}{}
		<-gate
		return 0, nil
	}, asterisque.WithConcurrency(1))
	svc.Handle(21, "take", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
		began <- struct{}{}
		return nil, func() error { <-ctx.Done(); return ctx.Err() }()
	})
	here, there := testkit.Connect(t, svc)
	require.Empty(t, here.Pipes())

	var calls sync.WaitGroup
	call := func(want asterisque.PipeInfo) {
		calls.Go(func() { hold.Call(testkit.Background, here, 1, asterisque.WithPriority(want.Priority)) })
		require.Eventually(t, func() bool { return len(there.Pipes()) == int(want.Pipe)/2+1 }, testkit.Patience, time.Millisecond, "it has arrived")
	}
	running := asterisque.PipeInfo{Pipe: 0, Function: 20, Name: "hold", Priority: 3}
	call(running)
	<-began
	queued := asterisque.PipeInfo{Pipe: 2, Function: 20, Name: "hold", Priority: -4, Queued: true}
	call(queued)
	p, err := here.Open(testkit.Background, 21, nil)
	require.NoError(t, err)
	<-began
	require.NoError(t, p.Send(testkit.Background, make([]byte, 1000)))
	stream := asterisque.PipeInfo{Pipe: 4, Function: 21, Name: "take", Waiting: limits.Amount{Messages: 1, Bytes: 1000 + 512}}
	require.Eventually(t, func() bool { _, ok := there.SlowestPipe(); return ok }, testkit.Patience, time.Millisecond, "the Block has arrived")

	require.Equal(t, []asterisque.PipeInfo{running, queued, stream}, there.Pipes())
	slowest, _ := there.SlowestPipe()
	require.Equal(t, stream, slowest)
	for i, want := range []asterisque.PipeInfo{running, queued, stream} {
		want.Name, want.Made, want.Queued, want.Waiting = "", true, false, limits.Amount{}
		require.Equal(t, want, here.Pipes()[i], "the caller knows neither the name nor how far it is")
	}

	p.Abort(nil)
	close(gate)
	calls.Wait()
	require.Eventually(t, func() bool { return len(there.Pipes())+len(here.Pipes()) == 0 }, testkit.Patience, time.Millisecond, "all are over")
	here.Close()
	require.Empty(t, here.Pipes(), "an ended session has none")
}

// TestPipes_Concurrent lists the pipes while calls run, for the race detector: the library reuses a
// unary call as soon as it has ended.
func TestPipes_Concurrent(t *testing.T) {
	here, there := testkit.Connect(t, testkit.EchoService())
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			for range 200 {
				_, err := testkit.Echo.Call(testkit.Background, here, "x")
				require.NoError(t, err)
			}
		})
	}
	done := make(chan struct{})
	go func() { calls.Wait(); close(done) }()
	for {
		for _, p := range append(here.Pipes(), there.Pipes()...) {
			require.Equal(t, testkit.Echo.Number(), p.Function)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}
