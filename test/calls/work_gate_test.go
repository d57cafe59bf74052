package calls

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/priority"
)

// gateNodes returns a node that offers held with a limit of concurrent calls, and a node that dials
// it.
func gateNodes(t testing.TB, calls int, opts ...asterisque.Option) (here, there *asterisque.Node, h *testkit.Holder) {
	svc, h := testkit.HoldService(asterisque.WithConcurrency(calls))
	here, there = asterisque.NewNode(), asterisque.NewNode(append(opts, asterisque.WithService(svc))...)
	t.Cleanup(func() { here.Close(); there.Close() })
	return here, there, h
}

// The bound of a function covers all sessions, and a waiting call keeps no worker.
func TestGate_FunctionBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there, h := gateNodes(t, 2, asterisque.WithWorkers(asterisque.Workers{Session: 3}))
		var wg sync.WaitGroup
		var sessions []*asterisque.Session
		for range 3 {
			s, accepted := asterisquetest.ConnectNodes(t, here, there)
			sessions = append(sessions, s, accepted)
			for range 20 {
				wg.Go(func() { testkit.Held.Call(testkit.Background, s, "") })
			}
			synctest.Wait()
			_, err := testkit.Echo.Call(testkit.Background, s, "the workers are free for other functions")
			require.NoError(t, err)
		}
		synctest.Wait()
		total := there.Stats().Total
		require.Equal(t, []int{2, 58, 58}, []int{total.Running, total.Waiting, total.Inbound.Messages}, "what waits is counted")
		for range 60 {
			h.End <- struct{}{}
			synctest.Wait()
		}
		wg.Wait()
		require.EqualValues(t, 2, h.Most.Load())
		testkit.WantIdle(t, sessions...)
	})
}

// At a gate, sessions take turns, and priorities count within one.
func TestGate_TurnsAndPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there, h := gateNodes(t, 1)
		greedy, _ := asterisquetest.ConnectNodes(t, here, there)
		modest, _ := asterisquetest.ConnectNodes(t, here, there)
		var wg sync.WaitGroup
		call := func(s *asterisque.Session, name string, p int) {
			wg.Go(func() { testkit.Held.Call(testkit.Background, s, name, asterisque.WithPriority(priority.Priority(p))) })
			synctest.Wait()
		}
		call(greedy, "first", 0)
		for i := range 5 {
			call(greedy, fmt.Sprint("greedy ", i), i)
		}
		call(greedy, "greedy 4, again", 4)
		call(modest, "modest, low", -5)
		call(modest, "modest", 0)
		close(h.End)
		wg.Wait()
		require.Equal(t, []string{"first", "greedy 4", "modest", "greedy 4, again", "modest, low", "greedy 3", "greedy 2", "greedy 1", "greedy 0"}, h.Order())
	})
}

// A call that is cancelled at a gate leaves its place.
func TestGate_GivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there, h := gateNodes(t, 1)
		a, _ := asterisquetest.ConnectNodes(t, here, there)
		b, _ := asterisquetest.ConnectNodes(t, here, there)
		running, giveUpRunning := context.WithCancel(testkit.Background)
		waiting, giveUpWaiting := context.WithCancel(testkit.Background)
		var wg sync.WaitGroup
		testkit.Calls(&wg, 1, func(int) { testkit.Held.Call(running, a, "runs") })
		testkit.Calls(&wg, 2, func(int) { testkit.Held.Call(waiting, a, "waits") })
		testkit.Calls(&wg, 1, func(int) { testkit.Held.Call(testkit.Background, b, "goes on") })
		giveUpWaiting()
		synctest.Wait()
		require.Equal(t, []string{"runs"}, h.Order())
		giveUpRunning()
		synctest.Wait()
		require.Equal(t, []string{"goes on"}, h.Order(), "the calls before it are gone")
		close(h.End)
		wg.Wait()
	})
}

// TestGate_UntilReturn uses a handler that ignores its context: its place is free only when it has
// returned.
func TestGate_UntilReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, began, end := asterisque.NewService(), make(chan struct{}, 2), make(chan struct{})
		svc.Handle(7, "stubborn", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { began <- struct{}{}; <-end; return nil, nil }, asterisque.WithConcurrency(1))
		dialled, accepted := testkit.InMemory(t, svc)
		ctx, cancel := context.WithCancel(testkit.Background)
		var wg sync.WaitGroup
		testkit.Calls(&wg, 1, func(int) { dialled.Call(ctx, 7, nil) })
		testkit.Calls(&wg, 1, func(int) { dialled.Call(testkit.Background, 7, nil) })
		cancel()
		synctest.Wait()
		require.Len(t, began, 1, "its call is over, and it runs on")
		require.Equal(t, 1, accepted.Stats().Running)
		close(end)
		wg.Wait()
		require.Len(t, began, 2)
		testkit.WantIdle(t, dialled, accepted)
	})
}

// TestGate_NoPlaceIsLost makes calls of a function for two concurrent calls meet in pairs: if the
// gate lost a place, a call would remain alone.
func TestGate_NoPlaceIsLost(t *testing.T) {
	svc := asterisque.NewService()
	meet := make(chan struct{})
	svc.Handle(7, "meet", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
		select {
		case meet <- struct{}{}:
		case <-meet:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return nil, nil
	}, asterisque.WithConcurrency(2))
	here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(svc))
	t.Cleanup(func() { here.Close(); there.Close() })
	ctx, cancel := context.WithTimeout(testkit.Background, testkit.Patience)
	defer cancel()
	var left atomic.Int64
	left.Store(10_000) // an even number, for all together: no call remains alone
	var wg sync.WaitGroup
	for range 2 {
		s, _ := testkit.ConnectNodes(t, here, there)
		for range 50 {
			wg.Go(func() {
				for left.Add(-1) >= 0 {
					if _, err := s.Call(ctx, 7, nil); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
}

// TestGate_ClosedSession closes sessions while their calls wait for a long-running one, and
// requires that the gate keeps none of them.
func TestGate_ClosedSession(t *testing.T) {
	here, there, h := gateNodes(t, 1)
	s, _ := testkit.ConnectNodes(t, here, there)
	var wg sync.WaitGroup
	wg.Go(func() { testkit.Held.Call(testkit.Background, s, "for long") })
	<-h.Began
	dead := func() weak.Pointer[asterisque.Session] {
		s, accepted := testkit.ConnectNodes(t, here, there)
		var gone sync.WaitGroup
		gone.Go(func() { testkit.Held.Call(testkit.Background, s, "waits") })
		for accepted.Stats().Waiting == 0 {
			runtime.Gosched()
		}
		s.Close()
		accepted.Close()
		gone.Wait()
		return weak.Make(accepted)
	}()
	require.Eventually(t, func() bool { runtime.GC(); return dead.Value() == nil }, testkit.Patience, 10*time.Millisecond)
	close(h.End)
	wg.Wait()
}

// Nested calls of a bounded function need no place of their own.
func TestGate_NestedOfFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		testkit.Nested.Handle(svc, nestedHandler, asterisque.WithConcurrency(1))
		here, there := asterisque.NewService(), svc
		testkit.Nested.Handle(here, nestedHandler, asterisque.WithConcurrency(1))
		a, b := asterisque.NewNode(asterisque.WithService(here)), asterisque.NewNode(asterisque.WithService(there))
		defer a.Close()
		defer b.Close()
		dialled, accepted := asterisquetest.ConnectNodes(t, a, b)
		ctx, cancel := context.WithTimeout(testkit.Background, time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if got, err := testkit.Nested.Call(ctx, dialled, 9); err != nil || got != 9 {
					t.Errorf("got %d, %v", got, err)
				}
			})
		}
		wg.Wait()
		testkit.WantIdle(t, dialled, accepted)
	})
}

// TestGate_NestedDurable runs one durable call of the peer at a time. That one waits for a nested
// call, which waits behind a durable one of the same key.
func TestGate_NestedDurable(t *testing.T) {
	const outer, inner = 1, 2
	for name, sessions := range map[string]int{"and waits for a worker": 1, "and waits for that place": 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc := asterisque.NewService()
				svc.Handle(outer, "outer", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
					return asterisque.SessionOf(ctx).Call(ctx, outer, nil)
				})
				svc.Handle(inner, "inner", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return nil, nil },
					asterisque.WithKey(func([]byte) int { return 0 }))
				node := asterisque.NewNode(asterisque.WithService(svc), testkit.Named(), asterisque.WithWorkers(asterisque.Workers{Session: 1}))
				defer node.Close()
				var peers []*testkit.RawPeer
				for range sessions {
					p, _ := testkit.RawTo(t, node, testkit.HelloOf("alice"))
					peers = append(peers, p)
				}
				first, last := peers[0], peers[sessions-1]
				durable := func(key string) message.Meta { return message.Meta{Key: fmt.Appendf(nil, "%-16s", key)} }
				first.Send(&message.Open{Pipe: 0, Function: outer, Meta: durable("outer")})
				back := first.Open()
				last.Send(&message.Open{Pipe: 2, Function: inner, Meta: durable("inner")})
				synctest.Wait()
				first.Send(&message.Open{Pipe: 4, Function: inner, Meta: message.Meta{Nested: true, Within: back.Pipe}})
				require.EqualValues(t, 2, last.Answer().Pipe)
				require.EqualValues(t, 4, first.Answer().Pipe)
				first.Send(&message.Close{Pipe: back.Pipe})
				require.EqualValues(t, 0, first.Answer().Pipe)
				synctest.Wait()
				testkit.WantIdle(t, node.Sessions()...)
			})
		})
	}
}
