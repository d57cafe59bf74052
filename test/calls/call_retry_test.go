package calls

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// refused returns an error with code for a call that certainly did not run.
func refused(code codec.Code) error { return &asterisque.Abort{Code: code, Ran: codec.Refused} }

// attempts runs r on a call that fails with err, and returns the waits between the attempts and the
// last error.
func attempts(ctx context.Context, r *asterisque.Retry, err func(n int) error) (waits []time.Duration, last error) {
	var before time.Time
	n := 0
	last = r.Do(ctx, func(context.Context) error {
		if n++; n > 1 {
			waits = append(waits, time.Since(before))
		}
		before = time.Now()
		return err(n)
	})
	return waits, last
}

func always(err error) func(int) error { return func(int) error { return err } }

// Retry repeats only calls that certainly did not run.
func TestRetry_OnlyNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		calls int
	}{
		"success":                               {nil, 1},
		"overloaded, refused":                   {refused(codec.Overloaded), 4},
		"unavailable, refused":                  {refused(codec.Unavailable), 4},
		"unavailable, never sent":               {&asterisque.Abort{Code: codec.Unavailable, Ran: codec.NeverSent}, 4},
		"overloaded, but it may have run":       {&asterisque.Abort{Code: codec.Overloaded}, 1},
		"unavailable, but it may have run":      {&asterisque.Abort{Code: codec.Unavailable, Remote: true}, 1},
		"no such function, which is no burden":  {refused(codec.NoFunction), 1},
		"expired":                               {refused(codec.Expired), 1},
		"the session is closed: take a new one": {refused(codec.SessionClosed), 1},
		"another error":                         {testkit.ErrBroken, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				waits, err := attempts(testkit.Background, new(asterisque.Retry), always(c.err))
				require.Equal(t, c.err, err)
				require.Len(t, waits, c.calls-1)
			})
		})
	}
}

// Retry doubles its wait each time, with jitter, up to its maximum.
func TestRetry_DoublesWaits(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		retry asterisque.Retry
		want  []time.Duration // at most; at least half of it
	}{
		"by default":              {asterisque.Retry{}, []time.Duration{50 * ms, 100 * ms, 200 * ms}},
		"up to five seconds":      {asterisque.Retry{Attempts: 10}, []time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 5000 * ms, 5000 * ms}},
		"as told":                 {asterisque.Retry{Attempts: 6, First: 10 * ms, Most: 50 * ms}, []time.Duration{10 * ms, 20 * ms, 40 * ms, 50 * ms, 50 * ms}},
		"the first is the most":   {asterisque.Retry{Attempts: 4, First: time.Hour, Most: time.Second}, []time.Duration{time.Second, time.Second, time.Second}},
		"the most is below 50 ms": {asterisque.Retry{Attempts: 4, Most: ms}, []time.Duration{ms, ms, ms}},
		"one attempt":             {asterisque.Retry{Attempts: 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen := map[time.Duration]bool{}
				for range 50 {
					waits, err := attempts(testkit.Background, &c.retry, always(refused(codec.Unavailable)))
					require.ErrorIs(t, err, asterisque.ErrUnavailable)
					require.Len(t, waits, len(c.want))
					for i, want := range c.want {
						require.LessOrEqual(t, waits[i], want)
						require.GreaterOrEqual(t, waits[i], want/2)
						seen[waits[i]] = true
					}
				}
				require.True(t, len(c.want) == 0 || len(seen) > 20, "chance makes them differ")
			})
		})
	}
}

// Retry waits at least as long as the overloaded side advised.
func TestRetry_AdvisedWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		advised := codec.OverloadedFor(7*time.Second, "")
		advised.Ran = codec.Refused
		waits, _ := attempts(testkit.Background, &asterisque.Retry{Attempts: 3, Most: 10 * time.Second}, always(advised))
		require.Len(t, waits, 2)
		for i, w := range waits {
			require.GreaterOrEqual(t, w, 7*time.Second)
			require.LessOrEqual(t, w, 7*time.Second+50*time.Millisecond<<i)
		}
	})
}

// The advice to wait for weeks is limited.
func TestAttackRetry_LongAdvice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		advised := codec.OverloadedFor(24*24*time.Hour, "")
		advised.Ran = codec.Refused
		for most, r := range map[time.Duration]*asterisque.Retry{5 * time.Second: {}, time.Minute: {Most: time.Minute}} {
			waits, err := attempts(testkit.Background, r, always(advised))
			require.ErrorIs(t, err, asterisque.ErrOverloaded)
			require.Equal(t, []time.Duration{most, most, most}, waits)
		}
	})
}

// The context ends the waits of Retry.
func TestRetry_ContextEndsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := refused(codec.Unavailable)
		r := &asterisque.Retry{Attempts: 100, First: time.Second, Most: time.Second}
		ctx, cancel := context.WithCancel(testkit.Background)
		time.AfterFunc(1200*time.Millisecond, cancel)
		begin := time.Now()
		waits, last := attempts(ctx, r, always(err))
		require.Equal(t, err, last, "what the last call said, not what the context says")
		require.Equal(t, 1200*time.Millisecond, time.Since(begin))
		require.NotEmpty(t, waits)

		ctx, cancel = context.WithTimeout(testkit.Background, 400*time.Millisecond)
		defer cancel()
		begin = time.Now()
		waits, last = attempts(ctx, r, always(err))
		require.Equal(t, err, last)
		require.Empty(t, waits)
		require.Zero(t, time.Since(begin), "a wait that the deadline would end is not begun")
	})
}

// Retry stops after the first success.
func TestRetry_FirstSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits, err := attempts(testkit.Background, new(asterisque.Retry), func(n int) error {
			if n < 3 {
				return refused(codec.Overloaded)
			}
			return nil
		})
		require.NoError(t, err)
		require.Len(t, waits, 2)
	})
}

// A budget bounds the share of repetitions.
func TestRetryBudget_Share(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &asterisque.Retry{Attempts: 10, Budget: asterisque.NewRetryBudget(0.125, 5)}
		repeated := 0
		for range 1000 {
			waits, _ := attempts(testkit.Background, r, always(refused(codec.Unavailable)))
			repeated += len(waits)
		}
		require.InDelta(t, 5+125, repeated, 1, "its reserve, and one in eight")
		for range 1000 {
			require.NoError(t, r.Do(testkit.Background, func(context.Context) error { return nil }))
		}
		repeated = 0
		for range 2 {
			waits, _ := attempts(testkit.Background, r, always(refused(codec.Unavailable)))
			repeated += len(waits)
		}
		require.Equal(t, 5, repeated, "no more than its reserve is saved")
	})
}

// A budget is safe for concurrent use.
func TestRetryBudget_Concurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &asterisque.Retry{Budget: asterisque.NewRetryBudget(0, 20)}
		var mu sync.Mutex
		made := 0
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				r.Do(testkit.Background, func(context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					made++
					return refused(codec.Unavailable)
				})
			})
		}
		wg.Wait()
		require.Equal(t, 50+20, made)
	})
}

// TestRetry_Overload makes more concurrent calls than may wait, and requires that all of them
// succeed in the end.
func TestRetry_Overload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		testkit.Held.Handle(svc, func(_ context.Context, s string) (string, error) {
			fakeclock.Sleep(20 * time.Millisecond)
			return s, nil
		})
		dialled, accepted := testkit.InMemory(t, svc, asterisque.WithWorkers(asterisque.Workers{Session: 1, Waiting: 5}))
		r := &asterisque.Retry{Attempts: 100}
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if err := r.Do(testkit.Background, func(ctx context.Context) error { _, err := testkit.Held.Call(ctx, dialled, ""); return err }); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.LessOrEqual(t, accepted.Stats().MostWaiting, 5)
		require.Greater(t, accepted.Stats().Served, uint64(50), "some were refused")
		testkit.WantIdle(t, dialled, accepted)
	})
}
