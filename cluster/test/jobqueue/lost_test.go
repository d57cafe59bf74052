package jobqueue_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/jobqueue"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// handedOutSoon shortens the delay before a message without a sign of its node is delivered again.
func handedOutSoon(c *settings) {
	c.Worker.Again, c.Worker.Look = time.Second, 100*time.Millisecond
}

func TestQueueLost_Acknowledgement(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		deaf := func(c *settings) { c.Options = append(c.Options, nats.UserInfo("deaf", "secret")) }
		s := &bookings{t: t, b: natstest.StartServer(t, broker.Config{ConfigFile: written(t, `
	no_auth_user: all
	accounts { asterisque { jetstream: enabled, users: [
	  { user: all, password: secret }
	  { user: deaf, password: secret, permissions: { publish: { deny: "$JS.ACK.>" } } }
	] } }`)})}
		a := s.takes("a", bookingtest.Answers("booked"), handedOutSoon, deaf)
		c := s.customer()
		r := posts(t, c, 1)
		requireResult(t, "booked", c, r)
		require.Eventually(t, func() bool {
			on, err := a.js.Consumer(t.Context(), queueStream, consumers[1])
			return err == nil && on.CachedInfo().Delivered.Consumer > 1
		}, natstest.Timeout, perLook, "it is handed out again")
		require.NoError(t, a.Close())
		s.takes("b", bookingtest.Answers("again"), handedOutSoon)
		soonWaiting(t, c, 0)
		requireResult(t, "booked", c, r)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestQueueLost_RunsElsewhere(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		r := posts(t, c, 1)
		begins(t, c, r, 0)
		require.ErrorIs(t, c.Withdraw(t.Context(), r), jobqueue.ErrBegun)
		s.takes("a", bookingtest.Answers("booked"))
		requireResult(t, "booked", c, r)
		o, _ := outcomeOf(t, c, r)
		require.Equal(t, "a", o.Node)
		require.NotZero(t, o.Since)
	})
}

func TestQueueLost_RecordExpired(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		long := time.Now().Add(-2 * time.Hour).UnixMilli()
		var receipts []string
		for _, f := range []asterisque.Function[int, string]{bookingtest.Book, bookingtest.Rebook} {
			r, err := post(t.Context(), c, "orders", f, 1)
			require.NoError(t, err)
			begins(t, c, r, long)
			receipts = append(receipts, r)
		}
		s.takes("a", bookingtest.Answers("booked"), func(c *settings) { c.Durable.Idempotent = []uint16{bookingtest.Rebook.Number()} })
		_, err := results(t, c, receipts[0])
		bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, err)
		requireResult(t, "booked", c, receipts[1])
		require.EqualValues(t, 1, s.Runs.Load(), "the one that may run more often")
	})
}

func TestQueueLost_Refusal(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		r, err := post(t.Context(), c, "orders", asterisque.Func[int, string](999, "unknown"), 1)
		require.NoError(t, err)
		begins(t, c, r, 0)
		s.takes("a", bookingtest.Answers("booked"))
		_, err = results(t, c, r)
		bookingtest.RequireMayHaveRun(t, asterisque.ErrNoFunction, err)
	})
}

func TestQueueLost_MayHaveRun(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		f, release := bookingtest.Holds("late")
		s.takes("a", f)
		r := posts(t, c, 1)
		require.Eventually(t, func() bool { return s.Runs.Load() == 1 }, natstest.Timeout, perLook)
		p := decodeReceipt(t, r)
		p.Posted = time.Now().Add(-time.Minute).UnixMilli()
		p.Deadline = time.Now().Add(-30 * time.Second).UnixMilli() // the poster waits no longer
		_, err := results(t, c, p.encode())
		bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, err)
		_, given := outcomeOf(t, c, r)
		release()
		soonWaiting(t, c, 0, "the call is over")
		_, there := outcomeOf(t, c, r)
		require.Equal(t, given.Revision(), there.Revision(), "the later write fails")
		_, err = results(t, c, r)
		bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, err)
	})
}

// delivered returns the number of deliveries of calls without an urgency.
func delivered(t testing.TB, c *member) uint64 {
	t.Helper()
	on, err := c.js.Consumer(t.Context(), queueStream, consumers[1])
	require.NoError(t, err)
	return on.CachedInfo().Delivered.Consumer
}

func TestQueueLost_TakenOver(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		f, release := bookingtest.Holds("booked")
		s.takes("a", f)
		r := posts(t, c, 1)
		require.Eventually(t, func() bool { return s.Runs.Load() == 1 }, natstest.Timeout, perLook)
		takesOver(t, c, r)
		release()
		requireResult(t, "booked", c, r)
		require.EqualValues(t, 1, delivered(t, c), "the first node writes the outcome")
	})
}

func TestQueueLost_TakenOverRefusal(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		var attempts atomic.Int64
		arrived, refuse := make(chan struct{}), make(chan struct{})
		s.Within = func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			if attempts.Add(1) > 1 {
				return next(ctx, c)
			}
			close(arrived)
			<-refuse
			return c.Refuse(asterisque.ErrOverloaded.Withf("later"))
		}
		f, release := bookingtest.Holds("booked")
		s.takes("a", f)
		r := posts(t, c, 1)
		<-arrived
		want, _ := takesOver(t, c, r)
		close(refuse)
		require.Eventually(t, func() bool { return s.Runs.Load() == 1 }, natstest.Timeout, perLook)
		o, _ := outcomeOf(t, c, r)
		require.Equal(t, want.Since, o.Since, "the refusal keeps the outcome: the call is another node's")
		release()
		requireResult(t, "booked", c, r)
	})
}

func TestQueueLost_OutcomesGone(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		a, c := s.takes("a", bookingtest.Answers("booked"), handedOutSoon), s.customer()
		requireResult(t, "booked", c, posts(t, c, 1))
		require.NoError(t, a.js.DeleteKeyValue(t.Context(), outcomesBucket))
		requireResult(t, "booked", c, posts(t, c, 2))
	})
}

func TestQueueLost_LaggingServer(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		f, release := bookingtest.Holds("booked")
		old := new(lag)
		s.takes("a", f, withOutcomes(func(kv jetstream.KeyValue) jetstream.KeyValue { return &laggingKV{kv, old} }))
		r := posts(t, c, 1)
		require.Eventually(t, func() bool { return s.Runs.Load() == 1 }, natstest.Timeout, perLook)
		_, had := takesOver(t, c, r)
		old.begin(had, 200*time.Millisecond)
		release()
		requireResult(t, "booked", c, r)
		require.NotZero(t, old.answers())
		require.EqualValues(t, 1, delivered(t, c), "the first node writes the outcome")
	})
}
