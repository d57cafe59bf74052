package jobqueue

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/priority"
)

// roomy increases the limits of waiting and recorded calls.
func roomy(c *settings) {
	c.Queue.Calls = 1000
	c.Durable.Calls = 2000
}

func TestQueue_TwoNodes(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		const calls = 60
		s := newBookings(t)
		c := s.customer(roomy)
		var done register
		var receipts []string
		for n := range calls {
			receipts = append(receipts, posts(t, c, n))
		}
		// neither ends its first call before both have one
		var both sync.WaitGroup
		both.Add(2)
		for _, id := range []string{"a", "b"} {
			run, first := done.at(id), new(sync.Once)
			s.takes(id, func(ctx context.Context, n int) (string, error) {
				first.Do(func() { both.Done(); both.Wait() })
				return run(ctx, n)
			}, roomy, func(c *settings) { c.Worker.Runs = 1 })
		}
		for _, r := range receipts {
			_, err := results(t, c, r)
			require.NoError(t, err)
		}
		done.requireOnce(t, calls)
		require.Len(t, done.by, 2)
		require.Eventually(t, func() bool { return waiting(t, c) == 0 }, natstest.Timeout, 2*perLook)
	})
}

func TestWithdraw_Race(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		const calls = 60
		s := newBookings(t)
		c := s.customer(roomy)
		var done register
		s.takes("a", done.at("a"), roomy)
		s.takes("b", done.at("b"), roomy)
		back := 0
		for n := range calls {
			r := posts(t, c, n)
			err := c.Withdraw(t.Context(), r)
			_, failed := results(t, c, r)
			if err == nil {
				back++
				require.ErrorIs(t, failed, ErrWithdrawn)
				require.Zero(t, done.times(n), "it was taken back")
				continue
			}
			require.ErrorIs(t, err, ErrBegun)
			require.NoError(t, failed)
			require.Equal(t, 1, done.times(n))
		}
		t.Log(back, "of", calls, "were taken back")
		require.Eventually(t, func() bool { return waiting(t, c) == 0 }, natstest.Timeout, 2*perLook)
	})
}

func TestQueue_RefusedForNow(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		var refused atomic.Int64
		free := make(chan struct{})
		s.Within = func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			select {
			case <-free:
				return next(ctx, c)
			default:
				refused.Add(1)
				return c.Refuse(asterisque.ErrOverloaded.Withf("later"))
			}
		}
		s.takes("a", bookingtest.Answers("booked"))
		r, other := posts(t, c, 1), posts(t, c, 2)
		require.Eventually(t, func() bool { return refused.Load() > 2 }, natstest.Timeout, perLook)
		require.Eventually(t, func() bool {
			err := c.Withdraw(t.Context(), other)
			require.True(t, err == nil || errors.Is(err, ErrBegun), "%v", err)
			return err == nil
		}, natstest.Timeout, perLook, "it has not begun, between two attempts")
		close(free)
		requireResult(t, "booked", c, r)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestQueue_SharePerPoster(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c, other := s.customer(), s.customer(func(c *settings) { c.Identity = "other" })
		s.takes("a", bookingtest.Answers("booked"), func(c *settings) { c.Durable.Calls, c.Durable.Share = 8, 0.25 })
		for n := range 2 {
			requireResult(t, "booked", c, posts(t, c, n))
		}
		posts(t, c, 3) // waits
		requireResult(t, "booked", other, posts(t, other, 4))
		require.EqualValues(t, 3, s.Runs.Load())
	})
}

func TestQueue_UrgencyClasses(t *testing.T) {
	t.Parallel()
	for urgency, class := range map[int8]int{math.MaxInt8: 0, 1: 0, 0: 1, -1: 2, math.MinInt8: 2} {
		require.Equal(t, class, classOf(priority.Priority(urgency)), urgency)
	}
}

func TestQueue_TakenWhileDraining(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, release := bookingtest.Holds("at a")
		a, c := s.takes("a", f), s.customer()
		posts(t, c, 1)
		require.Eventually(t, func() bool { return s.Runs.Load() == 1 }, natstest.Timeout, perLook)
		left := make(chan error, 1)
		go func() { left <- a.Shutdown(context.Background()) }() // ends once the call is over
		<-a.node.Draining()
		r := posts(t, c, 2)
		taken, err := a.worker.queue.take(t.Context(), a.nc, 1)
		require.NoError(t, err)
		over := make(chan struct{})
		go func() { // ends when the call is handed back
			defer close(over)
			if taken != nil { // otherwise the node itself was faster
				(&takenJob{worker: a.worker, queue: a.worker.queue, message: taken}).do()
			}
		}()
		select {
		case <-over:
		case <-time.After(natstest.Timeout):
			t.Error("the node waits for itself")
		}
		release()
		require.NoError(t, <-left)
		s.takes("b", bookingtest.Answers("at b"))
		requireResult(t, "at b", c, r)
	})
}
