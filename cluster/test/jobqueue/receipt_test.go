package jobqueue_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/jobqueue"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

func TestResult_Forgotten(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		p := decodeReceipt(t, posts(t, c, 1))
		p.Key = randomKey()
		p.Posted = time.Now().Add(-3 * time.Hour).UnixMilli()
		p.Deadline = time.Now().Add(-2 * time.Hour).UnixMilli()
		old := p.encode()
		_, err := results(t, c, old)
		bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, err)
		require.ErrorContains(t, err, "not kept any more")
		err = c.Withdraw(t.Context(), old)
		bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, err)
	})
}

func TestResult_Expired(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		r := posts(t, c, 1, withDeadline(time.Now().Add(2*time.Second)))
		_, err := results(t, c, r)
		bookingtest.RequireUnused(t, asterisque.ErrExpired, err)
		require.ErrorIs(t, c.Withdraw(t.Context(), r), jobqueue.ErrBegun, "it is over")
	})
}

func TestResult_DeadlineWhileRunning(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		f, _ := bookingtest.Holds("never")
		s.takes("a", f)
		_, err := results(t, c, posts(t, c, 1, withDeadline(time.Now().Add(6*time.Second))))
		bookingtest.RequireMayHaveRun(t, asterisque.ErrExpired, err)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestReceipt_AfterRestart(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		written := posts(t, c, 1) // such as in a file
		later := posts(t, c, 2)
		require.NoError(t, c.Close())
		again := s.customer()
		require.NoError(t, again.Withdraw(t.Context(), later))
		s.takes("a", bookingtest.Answers("booked"))
		requireResult(t, "booked", again, written)
		_, err := results(t, again, later)
		require.ErrorIs(t, err, jobqueue.ErrWithdrawn)
	})
}

func TestReceipt_OtherIdentity(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		r := posts(t, c, 1)
		other := s.customer(func(c *settings) { c.Identity = "other" })
		require.NoError(t, s.b.Close())
		_, err := other.Result(t.Context(), r)
		require.ErrorIs(t, err, jobqueue.ErrNotYours)
		require.ErrorIs(t, other.Withdraw(t.Context(), r), jobqueue.ErrNotYours)
	})
}

func TestResult_BadOutcomes(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		r := posts(t, c, 1)
		bucket, key := outcomes(t, c), outcomeKey(t, r)
		for _, text := range []string{"", "garbage", "{}", `{"v":2,"state":"begun"}`} {
			_, err := bucket.Put(t.Context(), key, []byte(text))
			require.NoError(t, err)
			_, err = results(t, c, r)
			bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, err)
			require.True(t, errors.Is(c.Withdraw(t.Context(), r), asterisque.ErrUnavailable))
		}
	})
}

// TestReceipt_MakesNoQueue covers receipts from untrusted peers.
func TestReceipt_MakesNoQueue(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		now := time.Now()
		for late, ask := range map[time.Duration]func(string) error{
			-time.Hour: func(r string) error { return c.Withdraw(t.Context(), r) },
			time.Hour: func(r string) error {
				_, err := results(t, c, r)
				return err
			},
		} {
			forged := &receipt{Name: "nobody", Key: randomKey(), Owner: "customer"}
			forged.Posted, forged.Deadline = now.Add(-2*time.Hour).UnixMilli(), now.Add(-late).UnixMilli()
			bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, ask(forged.encode()))
		}
		for name := range c.js.StreamNames(t.Context()).Name() {
			require.NotContains(t, name, "nobody")
		}
	})
}
