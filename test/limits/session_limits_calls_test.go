package limits

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/stretchr/testify/require"
)

// Opens beyond their window wait at the caller.
func TestOpens_WaitForWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, started, _ := testkit.BlockService()
		here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 1}), testkit.LittleRoom())
		defer here.Close()
		defer there.Close()
		dialled, accepted := asterisquetest.ConnectNodes(t, here, there)
		ctx, cancel := context.WithCancel(testkit.Background)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { testkit.Block.Call(ctx, dialled, "") })
		}
		synctest.Wait()
		<-started
		st := accepted.Stats()
		require.LessOrEqual(t, st.Classes.Calls.Held, st.Classes.Calls.Room)
		require.InDelta(t, st.Classes.Calls.Room*7/8/513, st.Waiting, 3, "one runs, an eighth is for urgent calls, and the rest wait on either side")
		require.Equal(t, 99-st.Waiting, dialled.Stats().WaitOpens.Now)
		cancel()
		wg.Wait()
		synctest.Wait()
		_, err := testkit.Echo.Call(testkit.Background, dialled, "")
		require.ErrorIs(t, err, asterisque.ErrNoFunction, "what was never sent gives its place back")
	})
}

// An Open beyond the window is refused.
func TestOpens_BeyondWindow(t *testing.T) {
	svc, started, _ := testkit.BlockService()
	p, s := testkit.DialRaw(t, asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 1}), testkit.LittleRoom())
	open := func(id uint64, params int) {
		p.Send(&message.Open{Pipe: id, Function: testkit.Block.Number(), Params: testkit.RawText(params)})
	}
	open(0, 1)
	<-started
	room := s.Stats().Classes.Calls.Room
	id := uint64(0)
	for left := room; left >= 0; left -= 4000 + 512 {
		id += 2
		open(id, 4000)
	}
	c, err := message.ParseClose(p.Frame())
	for err != nil { // a Credit
		c, err = message.ParseClose(p.Frame())
	}
	require.EqualValues(t, id, c.Pipe)
	require.Equal(t, codec.WindowViolation, c.Abort.Code)
	require.NoError(t, s.Err())
}

// TestNested_AtTheLimits requires that no call hangs while both peers are at their limits and every
// handler calls back, eight deep, over an unbuffered connection.
func TestNested_AtTheLimits(t *testing.T) {
	windows := []asterisque.Option{asterisque.WithLimits(asterisque.Limits{Inbound: testkit.BytesOf(4<<20, 16<<20)}), asterisque.WithWorkers(asterisque.Workers{Session: 64})}
	few := append(slices.Clone(windows), asterisque.WithWorkers(asterisque.Workers{Session: 4}))
	for _, c := range []struct {
		name        string
		workers     int
		here, there []asterisque.Option
		finished    bool // all calls have to
	}{
		{"with windows", 1024, windows, windows, true},
		{"without windows", 1024, testkit.NoWindows(), testkit.NoWindows(), true},
		{"with windows on one side", 1024, windows, testkit.NoWindows(), true},
		{"with windows and fewer workers than calls are deep", 1024, few, few, true},
		{"without windows and with fewer workers than calls are deep", 4, testkit.NoWindows(), testkit.NoWindows(), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := testkit.Unbuffered()
				here, there := nestedNode(t, c.workers, c.here), nestedNode(t, c.workers, c.there)
				dialled, accepted := asterisquetest.ConnectOver(t, here, there, a, b)
				failed := callNested(t, 10*time.Minute, dialled, accepted)
				if c.finished {
					require.Zero(t, failed)
				}
			})
		})
	}
}

// Nested calls at the limits finish over TCP.
func TestNested_LimitsOverTCP(t *testing.T) {
	for name, opts := range map[string][]asterisque.Option{"with windows": {asterisque.WithLimits(asterisque.Limits{Inbound: testkit.BytesOf(2<<20, 8<<20)}), asterisque.WithWorkers(asterisque.Workers{Session: 64})}, "without windows": testkit.NoWindows()} {
		t.Run(name, func(t *testing.T) {
			dialled, accepted := testkit.ConnectNodes(t, nestedNode(t, 1024, opts), nestedNode(t, 1024, opts))
			require.Zero(t, callNested(t, time.Minute, dialled, accepted))
		})
	}
}

// nestedNode returns a node that offers nested, with small limits.
func nestedNode(t *testing.T, workers int, opts []asterisque.Option) *asterisque.Node {
	svc := asterisque.NewService()
	testkit.Nested.Handle(svc, func(ctx context.Context, n int) (int, error) {
		if n == 0 {
			return 0, nil
		}
		deeper, err := testkit.Nested.Call(ctx, asterisque.SessionOf(ctx), n-1)
		return deeper + 1, err
	})
	node := asterisque.NewNode(append([]asterisque.Option{asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: workers}),
		asterisque.WithLimits(asterisque.Limits{Inbound: testkit.Messages(8, 64), Outbound: testkit.Messages(8, 10_000)})}, opts...)...)
	t.Cleanup(func() { node.Close() })
	return node
}

// callNested makes a hundred nested calls on each session concurrently, with a depth of eight. It
// returns the number of calls that failed. Each of these must fail with an Abort.
func callNested(t *testing.T, limit time.Duration, sessions ...*asterisque.Session) (failed int64) {
	ctx, cancel := context.WithTimeout(testkit.Background, limit)
	defer cancel()
	var count atomic.Int64
	var wg sync.WaitGroup
	for _, s := range sessions {
		for range 100 {
			wg.Go(func() {
				got, err := testkit.Nested.Call(ctx, s, 8)
				var a *asterisque.Abort
				switch {
				case testkit.AsAbort(err, &a):
					count.Add(1)
				case err != nil || got != 8:
					t.Errorf("got %d, %v", got, err)
				}
			})
		}
	}
	wg.Wait()
	return count.Load()
}
