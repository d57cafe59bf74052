package jobqueue_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/jobqueue"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
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
		soonWaiting(t, c, 0)
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
				require.ErrorIs(t, failed, jobqueue.ErrWithdrawn)
				require.Zero(t, done.times(n), "it was taken back")
				continue
			}
			require.ErrorIs(t, err, jobqueue.ErrBegun)
			require.NoError(t, failed)
			require.Equal(t, 1, done.times(n))
		}
		t.Log(back, "of", calls, "were taken back")
		soonWaiting(t, c, 0)
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
		var err error
		require.Eventually(t, func() bool {
			err = c.Withdraw(t.Context(), other)
			return !errors.Is(err, jobqueue.ErrBegun)
		}, natstest.Timeout, perLook, "it has not begun, between two attempts")
		require.NoError(t, err)
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

func TestQueue_TakenWhileDraining(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, release := bookingtest.Holds("at a")
		pause := newPausedCreate()
		a := s.takes("a", f, withOutcomes(func(kv jetstream.KeyValue) jetstream.KeyValue { return &pausedKV{kv, pause} }))
		c := s.customer()
		first := posts(t, c, 1)
		require.Eventually(t, func() bool { return s.Runs.Load() == 1 }, natstest.Timeout, perLook)
		r := posts(t, c, 2)
		<-pause.reached // the node has taken it
		left := make(chan error, 1)
		go func() { left <- a.Shutdown(context.Background()) }() // ends once the call is over
		<-a.node.Draining()
		close(pause.free)
		s.takes("b", bookingtest.Answers("at b"))
		requireResult(t, "at b", c, r) // otherwise the node waits for itself
		require.Empty(t, left, "the first call still runs")
		release()
		require.NoError(t, <-left)
		requireResult(t, "at a", c, first)
	})
}
