package jobqueue_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/jobqueue"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// requireResult expects that a posted call has succeeded.
func requireResult(t testing.TB, want string, c *member, r string) {
	t.Helper()
	text, err := results(t, c, r)
	require.NoError(t, err)
	require.Equal(t, want, text)
}

func TestQueue_RunsOnJoin(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		r := posts(t, c, 1)
		require.NoError(t, c.Close())
		a := s.takes("a", bookingtest.Answers("booked"))
		again := s.customer() // another program of the same identity
		requireResult(t, "booked", again, r)
		requireResult(t, "booked", again, r)
		soonWaiting(t, a, 0)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestQueue_RunsAtOnce(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		s.takes("a", bookingtest.Answers("booked"))
		c := s.customer()
		for n := range 5 {
			requireResult(t, "booked", c, posts(t, c, n))
		}
	})
}

func TestResult_Abort(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		s.takes("a", func(_ context.Context, n int) (string, error) {
			if n == 1 {
				panic("poison")
			}
			return "", &asterisque.Abort{Code: 1234, Message: "sold out", Detail: []byte("detail")}
		})
		c := s.customer()
		_, err := results(t, c, posts(t, c, 1))
		require.ErrorIs(t, err, asterisque.ErrPanicked)
		_, err = results(t, c, posts(t, c, 2))
		var a *asterisque.Abort
		require.ErrorAs(t, err, &a)
		require.Equal(t, asterisque.Code(1234), a.Code)
		require.Equal(t, "detail", string(a.Detail))
		r, err := c.Post(t.Context(), "orders", jobqueue.Job{Function: 999, Params: nil})
		require.NoError(t, err)
		_, err = c.Result(t.Context(), r)
		require.ErrorIs(t, err, asterisque.ErrNoFunction)
	})
}

func TestQueue_UrgentFirst(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		var mu sync.Mutex
		var order []int // guarded by mu
		last := []string{
			posts(t, c, 2, withUrgency(-1)), posts(t, c, 1), posts(t, c, 0, withUrgency(1)),
		}
		s.takes("a", func(_ context.Context, n int) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, n)
			return "", nil
		}, func(c *settings) { c.Worker.Runs = 1 })
		for _, r := range last {
			requireResult(t, "", c, r)
		}
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, []int{0, 1, 2}, order)
	})
}

func TestQueue_Expires(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		_, err := results(t, c, posts(t, c, 1, withDeadline(time.Now().Add(2*time.Second))))
		require.ErrorIs(t, err, asterisque.ErrExpired)
		s.takes("a", bookingtest.Answers("late"))
		requireResult(t, "late", c, posts(t, c, 2))
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestWithdraw_UntilBegin(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		r := posts(t, c, 1)
		require.NoError(t, c.Withdraw(t.Context(), r))
		require.NoError(t, c.Withdraw(t.Context(), r))
		require.Zero(t, waiting(t, c))
		_, err := results(t, c, r)
		require.ErrorIs(t, err, jobqueue.ErrWithdrawn)

		f, release := bookingtest.Holds("booked")
		s.takes("a", f)
		r = posts(t, c, 2)
		require.Eventually(t, func() bool { return s.Runs.Load() == 1 }, natstest.Timeout, time.Millisecond)
		require.ErrorIs(t, c.Withdraw(t.Context(), r), jobqueue.ErrBegun)
		release()
		requireResult(t, "booked", c, r)
		require.ErrorIs(t, c.Withdraw(t.Context(), r), jobqueue.ErrBegun)
	})
}

func TestResult_OtherIdentity(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		s.takes("a", bookingtest.Answers("booked"))
		c := s.customer()
		r := posts(t, c, 1)
		requireResult(t, "booked", c, r)
		other := s.customer(func(c *settings) { c.Identity = "other" })
		_, err := results(t, other, r)
		require.ErrorIs(t, err, jobqueue.ErrNotYours)
		require.ErrorIs(t, err, asterisque.ErrUnauthorized)
		require.ErrorIs(t, other.Withdraw(t.Context(), r), jobqueue.ErrNotYours)
		forged := decodeReceipt(t, r)
		forged.Owner = "other"
		_, err = results(t, other, forged.encode())
		require.ErrorIs(t, err, jobqueue.ErrNotYours)
		_, err = c.Result(t.Context(), "nothing")
		require.ErrorIs(t, err, asterisque.ErrBadParams)
	})
}

func TestQueue_BadMessages(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		a := s.takes("a", bookingtest.Answers("booked"))
		for _, text := range []string{"", "garbage", "{}", `{"v":1,"key":"AAAA"}`, `{"v":0}`} {
			_, err := a.js.Publish(t.Context(), queueSubject+"1", []byte(text))
			require.NoError(t, err)
		}
		c := s.customer()
		requireResult(t, "booked", c, posts(t, c, 1))
		soonWaiting(t, c, 0)
	})
}

func TestQueue_NewerVersion(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		a, c := s.takes("a", bookingtest.Answers("booked")), s.customer()
		_, err := a.js.Publish(t.Context(), queueSubject+"0", []byte(`{"v":2,"key":7}`))
		require.NoError(t, err)
		requireResult(t, "booked", c, posts(t, c, 1))
		require.Eventually(t, func() bool {
			on, err := a.js.Consumer(t.Context(), queueStream, consumers[0])
			return err == nil && on.CachedInfo().Delivered.Consumer > 0
		}, natstest.Timeout, perLook, "it is handed out")
		soonWaiting(t, c, 1)
	})
}

func TestQueue_DeliveredTwice(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		r := posts(t, c, 1)
		m := message(t, c, decodeReceipt(t, r))
		a := s.takes("a", bookingtest.Answers("booked"))
		requireResult(t, "booked", c, r)
		o, had := outcomeOf(t, c, r)
		o.State = "begun" // simulates that the outcome was not written
		_, err := outcomes(t, c).Update(t.Context(), had.Key(), o.encode(), had.Revision())
		require.NoError(t, err)
		require.NoError(t, a.nc.PublishMsg(&nats.Msg{Subject: m.Subject, Data: m.Data}))
		requireResult(t, "booked", c, r)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestQueueOutage_WhileWaiting(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		s := &bookings{t: t, b: natstest.StartServer(t, broker.Config{Dir: dir})}
		a, c := s.takes("a", bookingtest.Answers("booked")), s.customer()
		requireResult(t, "booked", c, posts(t, c, 1))
		again := natstest.Restarted(s.b, dir)
		require.NoError(t, s.b.Close())
		natstest.StartServer(t, again)
		back := func(m *member) bool { return m.nc.Stats().Reconnects > 0 && m.nc.IsConnected() }
		require.Eventually(t, func() bool { return back(a) && back(c) }, natstest.Timeout, time.Millisecond)
		requireResult(t, "booked", c, posts(t, c, 2))
	})
}

func TestQueue_Drain(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, release := bookingtest.Holds("at a")
		a, c := s.takes("a", f), s.customer()
		r := posts(t, c, 1)
		require.Eventually(t, func() bool { return s.Runs.Load() == 1 }, natstest.Timeout, time.Millisecond)
		left := make(chan error, 1)
		go func() { left <- a.Shutdown(context.Background()) }() // ends once the call is over
		<-a.node.Draining()
		later := posts(t, c, 2)
		release()
		require.NoError(t, <-left)
		requireResult(t, "at a", c, r)
		s.takes("b", bookingtest.Answers("at b"))
		requireResult(t, "at b", c, later)
	})
}
