package calls

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// At most as many handlers run as a session has workers.
func TestWorkers_OfSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, h := testkit.HoldService()
		dialled, accepted := testkit.InMemory(t, svc, asterisque.WithWorkers(asterisque.Workers{Session: 3}))
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { testkit.Held.Call(testkit.Background, dialled, "x") })
		}
		synctest.Wait()
		st := accepted.Stats()
		require.Equal(t, []int{3, 7, 10}, []int{st.Running, st.Waiting, st.Pipes})
		require.Equal(t, 7, st.Inbound.Messages, "what waits counts for the limits")
		for n := range 10 {
			h.End <- struct{}{}
			synctest.Wait()
			require.Equal(t, min(3, 9-n), accepted.Stats().Running, "the next one begins at once")
		}
		wg.Wait()
		require.EqualValues(t, 3, h.Most.Load())
		require.Equal(t, 3, accepted.Stats().MostRunning)
		require.GreaterOrEqual(t, accepted.Stats().MostWaiting, 7)
		testkit.WantIdle(t, dialled, accepted)
	})
}

// One worker runs everything in order.
func TestWorkers_One(t *testing.T) {
	var mu sync.Mutex
	var order []uint64
	svc := asterisque.NewService()
	svc.Handle(1, "note", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, uint64(params[0])<<8|uint64(params[1]))
		return nil, nil
	})
	for name, opt := range map[string]asterisque.Option{"of the session": asterisque.WithWorkers(asterisque.Workers{Session: 1}), "of the node": asterisque.WithWorkers(asterisque.Workers{Node: 1})} {
		t.Run(name, func(t *testing.T) {
			order = nil
			p, s := testkit.DialRaw(t, asterisque.WithService(svc), opt)
			const n = 1000
			for i := range uint64(n) {
				p.Send(&message.Open{Pipe: 2 * i, Function: 1, Params: []byte{byte(i >> 8), byte(i)}})
			}
			for answers := 0; answers < n; {
				if _, err := message.ParseClose(p.Frame()); err == nil {
					answers++
				}
			}
			require.Len(t, order, n)
			require.True(t, slices.IsSorted(order))
			testkit.WantIdle(t, s)
		})
	}
}

// At most as many handlers run as a node has workers.
func TestWorkers_OfNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, h := testkit.HoldService()
		here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Node: 3}))
		defer here.Close()
		defer there.Close()
		var wg sync.WaitGroup
		for range 4 {
			s, _ := asterisquetest.ConnectNodes(t, here, there)
			for range 5 {
				wg.Go(func() { testkit.Held.Call(testkit.Background, s, "x") })
			}
		}
		synctest.Wait()
		st := there.Stats()
		require.Equal(t, []int{3, 17, 3}, []int{st.Total.Running, st.Total.Waiting, st.Busy})
		require.LessOrEqual(t, st.Crowded, 4, "each session waits once")
		close(h.End)
		wg.Wait()
		synctest.Wait()
		st = there.Stats()
		require.Equal(t, []int{0, 0, 0, 0}, []int{st.Total.Running, st.Total.Waiting, st.Busy, st.Crowded})
		require.EqualValues(t, 3, h.Most.Load())
		require.Equal(t, 3, st.MostBusy)
	})
}

// TestWorkers_SessionsTakeTurns requires that a few calls on one session alternate with the
// thousands of waiting calls of another session.
func TestWorkers_SessionsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, h := testkit.HoldService()
		here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Node: 1}))
		defer here.Close()
		defer there.Close()
		greedy, _ := asterisquetest.ConnectNodes(t, here, there)
		modest, _ := asterisquetest.ConnectNodes(t, here, there)
		var wg sync.WaitGroup
		for range 3000 {
			wg.Go(func() { testkit.Held.Call(testkit.Background, greedy, "greedy") })
		}
		synctest.Wait()
		for range 500 { // so that the backlog has been at work for a while
			h.End <- struct{}{}
		}
		for range 10 {
			wg.Go(func() { testkit.Held.Call(testkit.Background, modest, "modest") })
		}
		synctest.Wait()
		h.Order()
		close(h.End)
		wg.Wait()
		order := h.Order()
		require.Len(t, order, 3010-501)
		for i := range 10 {
			at := slices.Index(order, "modest")
			require.LessOrEqual(t, at, 1, "call %d of the modest session waits for one of the other", i)
			order = order[at+1:]
		}
	})
}

// TestWorkers_PeerReadsNothing requires that a session at its outbound soft limit does not occupy a
// worker of its node.
func TestWorkers_PeerReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := testkit.EchoService()
		svc.Handle(7, "large", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return make([]byte, 10_000), nil })
		there := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Node: 2}), asterisque.WithLimits(asterisque.Limits{Outbound: testkit.BytesOf(100_000, 300_000)}))
		here := asterisque.NewNode()
		defer here.Close()
		defer there.Close()
		a, b := wire.Pipe()
		defer a.Close()
		peer := &testkit.RawPeer{T: t, W: a}
		accepted := make(chan *asterisque.Session, 1)
		go func() { s, _ := there.Accept(testkit.Background, b); accepted <- s }()
		peer.Send(testkit.Hello())
		peer.Control()
		stuck := <-accepted
		for i := range uint64(100) {
			peer.Send(&message.Open{Pipe: 2 * i, Function: 7})
		}
		synctest.Wait()
		require.Equal(t, limits.Soft, stuck.Stats().OutboundState)
		require.NotZero(t, stuck.Stats().Parked, "answers wait for the peer, but no worker with them")
		require.Zero(t, there.Stats().Busy)

		good, _ := asterisquetest.ConnectNodes(t, here, there)
		ctx, cancel := context.WithTimeout(testkit.Background, time.Minute)
		defer cancel()
		for range 10 {
			_, err := testkit.Echo.Call(ctx, good, "")
			require.NoError(t, err)
		}
		for answers := 0; answers < 100; { // the peer reads again, and gets them all
			if _, err := message.ParseClose(peer.Frame()); err == nil {
				answers++
			}
		}
		synctest.Wait()
		require.Empty(t, testkit.Busy(stuck))
		require.Zero(t, there.Stats().Busy)
	})
}

// Workers are kept for the next call, and end when unused.
func TestWorkers_KeptForNextCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, h := testkit.HoldService()
		here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(svc))
		defer here.Close()
		defer there.Close()
		dialled, _ := asterisquetest.ConnectNodes(t, here, there)
		for range 100 {
			_, err := testkit.Echo.Call(testkit.Background, dialled, "one after the other")
			require.NoError(t, err)
			synctest.Wait()
		}
		require.Equal(t, 1, there.Stats().IdleWorkers, "all were run by one")
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { testkit.Held.Call(testkit.Background, dialled, "") })
		}
		synctest.Wait()
		require.Equal(t, 0, there.Stats().IdleWorkers)
		require.Equal(t, 20, there.Stats().Busy)
		close(h.End)
		wg.Wait()
		synctest.Wait()
		require.Equal(t, 20, there.Stats().IdleWorkers)
		fakeclock.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, there.Stats().IdleWorkers)
		_, err := testkit.Echo.Call(testkit.Background, dialled, "and there is one again")
		require.NoError(t, err)
	})
}

// Inline functions run while all workers are busy.
func TestInlineFunctions_AllBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, h := testkit.HoldService()
		var during asterisque.Stats
		inline := asterisque.Func[string, string](61, "inline")
		inline.Handle(svc, func(ctx context.Context, s string) (string, error) {
			during = asterisque.SessionOf(ctx).Stats()
			return strings.ToUpper(s), nil
		}, asterisque.WithInline())
		dialled, accepted := testkit.InMemory(t, svc, asterisque.WithWorkers(asterisque.Workers{Session: 1, Node: 1}))
		done := make(chan struct{})
		go func() { defer close(done); testkit.Held.Call(testkit.Background, dialled, "") }()
		<-h.Began
		got, err := inline.Call(testkit.Background, dialled, "x")
		require.NoError(t, err)
		require.Equal(t, "X", got)
		require.Equal(t, 1, during.Running, "it is not counted itself")
		close(h.End)
		<-done
		synctest.Wait()
		testkit.WantIdle(t, dialled, accepted)
	})
}

// An inline handler that calls back gets an error at once.
func TestInline_CallBackFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		inline := asterisque.Func[bool, string](61, "inline")
		inline.Handle(svc, func(ctx context.Context, typed bool) (string, error) {
			if typed {
				return testkit.Echo.Call(ctx, asterisque.SessionOf(ctx), "back")
			}
			_, err := asterisque.SessionOf(ctx).Open(context.WithoutCancel(ctx), testkit.Echo.Number(), nil)
			return "", err
		}, asterisque.WithInline())
		dialled, accepted := testkit.InMemory(t, svc)
		for _, typed := range []bool{true, false} {
			begin := time.Now()
			_, err := inline.Call(testkit.Background, dialled, typed)
			require.ErrorIs(t, err, asterisque.ErrUnavailable)
			require.ErrorContains(t, err, `function 61 "inline" runs inline`)
			require.Zero(t, time.Since(begin))
		}
		testkit.WantIdle(t, dialled, accepted)
	})
}
