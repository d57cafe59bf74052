package calls

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/priority"
)

// overload makes calls of held with given priorities, in order, and collects their outcomes by
// position.
type overload struct {
	wg      sync.WaitGroup
	answers []error
}

func (o *overload) call(s *asterisque.Session, priorities ...int) {
	at := len(o.answers)
	o.answers = append(o.answers, make([]error, len(priorities))...)
	for i, p := range priorities {
		o.wg.Go(func() {
			_, o.answers[at+i] = testkit.Held.Call(testkit.Background, s, fmt.Sprint(at+i), asterisque.WithPriority(priority.Priority(p)))
		})
		synctest.Wait()
	}
}

// When too many calls wait, the least urgent and latest one is refused.
func TestOverload_LeastUrgent(t *testing.T) {
	for name, c := range map[string]struct {
		waiting int
		arrive  []int // priorities; the first one runs
		refused []int // places in arrive
	}{
		"no call is displaced":                {3, []int{0, 0, 0, 0}, nil},
		"the newcomer, among equals":          {3, []int{0, 0, 0, 0, 0, 0}, []int{4, 5}},
		"the newcomer, if it is less urgent":  {3, []int{0, 1, 1, 1, 0}, []int{4}},
		"the latest of the least urgent":      {3, []int{0, -1, -1, 5, 1}, []int{2}},
		"one after the other":                 {3, []int{0, -1, -1, -2, 1, 1, 1, 1}, []int{3, 2, 1, 7}},
		"the newcomer, beside one that waits": {1, []int{0, 3, 3, 2}, []int{2, 3}},
		"no running call, of any priority":    {1, []int{-128, 0, 127}, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, h := testkit.HoldService()
				dialled, accepted := testkit.InMemory(t, svc, asterisque.WithWorkers(asterisque.Workers{Session: 1, Waiting: c.waiting}))
				var o overload
				o.call(dialled, c.arrive...)
				require.LessOrEqual(t, accepted.Stats().Waiting, c.waiting)
				close(h.End)
				o.wg.Wait()
				var refused []int
				for i, err := range o.answers {
					if err == nil {
						continue
					}
					refused = append(refused, i)
					require.ErrorIs(t, err, asterisque.ErrOverloaded)
					require.True(t, asterisque.Repeatable(err), "it did not run")
					advice, ok := asterisque.RetryAfter(err)
					require.True(t, ok)
					require.GreaterOrEqual(t, advice, 10*time.Millisecond)
					require.Less(t, advice, time.Minute)
				}
				require.ElementsMatch(t, c.refused, refused)
				require.LessOrEqual(t, accepted.Stats().MostWaiting, c.waiting)
				testkit.WantIdle(t, dialled, accepted)
			})
		})
	}
}

// The retry advice follows how long calls wait.
func TestOverload_Advice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, h := testkit.HoldService()
		dialled, _ := testkit.InMemory(t, svc, asterisque.WithWorkers(asterisque.Workers{Session: 1, Waiting: 1}))
		var o overload
		o.call(dialled, 0, 0, 0)
		advice, ok := asterisque.RetryAfter(o.answers[2])
		require.True(t, ok, o.answers[2])
		require.Equal(t, 10*time.Millisecond, advice, "no call has waited yet")
		fakeclock.Sleep(3 * time.Second) // the second call waits for it
		h.End <- struct{}{}
		synctest.Wait()
		o.call(dialled, 0, 0)
		advice, ok = asterisque.RetryAfter(o.answers[4])
		require.True(t, ok, o.answers[4])
		require.Equal(t, 3*time.Second, advice)
		close(h.End)
		o.wg.Wait()
	})
}

// By default no call is refused.
func TestOverload_Default(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, h := testkit.HoldService()
		dialled, accepted := testkit.InMemory(t, svc, asterisque.WithWorkers(asterisque.Workers{Session: 1}), testkit.LittleRoom())
		var wg sync.WaitGroup
		var failed atomic.Int64
		for range 1000 {
			wg.Go(func() {
				if _, err := testkit.Held.Call(testkit.Background, dialled, ""); err != nil {
					failed.Add(1)
				}
			})
		}
		synctest.Wait()
		require.Less(t, accepted.Stats().Waiting, 64, "the rest wait on the caller's side")
		close(h.End)
		wg.Wait()
		require.Zero(t, failed.Load())
		testkit.WantIdle(t, dialled, accepted)
	})
}

// TestOverload_NeededCall uses a handler that calls back, with an answer that needs a call to this
// side, while the queue here is too long: that call is not refused.
func TestOverload_NeededCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, h := testkit.HoldService()
		began, goOn := make(chan struct{}), make(chan struct{})
		outer, back := asterisque.Func[string, string](70, "outer"), asterisque.Func[string, string](71, "back")
		outer.Handle(svc, func(ctx context.Context, s string) (string, error) {
			close(began)
			<-goOn
			return back.Call(ctx, asterisque.SessionOf(ctx), s)
		})
		callers := asterisque.NewService()
		back.Handle(callers, func(ctx context.Context, s string) (string, error) {
			return testkit.Echo.Call(ctx, asterisque.SessionOf(ctx), s)
		})
		here := asterisque.NewNode(asterisque.WithService(callers))
		there := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 1, Waiting: 2}))
		defer here.Close()
		defer there.Close()
		dialled, _ := asterisquetest.ConnectNodes(t, here, there)
		var wg sync.WaitGroup
		testkit.Calls(&wg, 1, func(int) {
			if got, err := outer.Call(testkit.Background, dialled, "x"); err != nil || got != "x" {
				t.Errorf("got %q, %v", got, err)
			}
		})
		<-began
		var o overload
		o.call(dialled, 0, 0, 0)
		close(goOn)
		wg.Wait()
		close(h.End)
		o.wg.Wait()
		require.NoError(t, o.answers[0])
		require.NoError(t, o.answers[1])
		require.ErrorIs(t, o.answers[2], asterisque.ErrOverloaded)
	})
}

// TestWaiting_ExpiredNotRun checks the handler: a call that expires while it waits does not run.
func TestWaiting_ExpiredNotRun(t *testing.T) {
	for name, opt := range map[string]asterisque.HandlerOption{
		"for a worker": func() asterisque.HandlerOption { return asterisque.WithConcurrency(100) }(),
		"at a gate":    asterisque.WithConcurrency(1),
		"for its turn": asterisque.WithKey(func(string) int { return 0 }),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, h := testkit.HoldService(opt)
				workers := 10
				if name == "for a worker" {
					workers = 1
				}
				dialled, accepted := testkit.InMemory(t, svc, asterisque.WithWorkers(asterisque.Workers{Session: workers}))
				var wg sync.WaitGroup
				testkit.Calls(&wg, 1, func(int) { testkit.Held.Call(testkit.Background, dialled, "runs") })
				for range 10 {
					_, err := testkit.Held.Call(testkit.Background, dialled, "expires", asterisque.WithTTL(time.Second))
					require.ErrorIs(t, err, asterisque.ErrExpired)
				}
				close(h.End)
				wg.Wait()
				synctest.Wait()
				require.Equal(t, []string{"runs"}, h.Order())
				testkit.WantIdle(t, dialled, accepted)
			})
		})
	}
}
