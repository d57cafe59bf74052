package jobqueue

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// handedOutSoon shortens the delay before a message without a sign of its node is delivered again.
func handedOutSoon(c *settings) {
	c.Worker.Again, c.Worker.Look = time.Second, 100*time.Millisecond
}

// beginsPosted writes that a call has begun at another node, and publishes its message again.
func beginsPosted(t *testing.T, c *member, m *postedCall) (*queue, *callOutcome) {
	t.Helper()
	q, err := c.queueOf(t.Context(), "orders")
	require.NoError(t, err)
	o := &callOutcome{Version: outcomeVersion, State: outcomeBegun, Owner: m.Owner, Node: "lost", Deadline: m.Deadline}
	there, err := q.decide(t.Context(), m.Key, o)
	require.NoError(t, err)
	require.Nil(t, there)
	return q, o
}

// bookingOf returns a call that a node posts, and its receipt.
func bookingOf(t *testing.T, c *member, function uint16) (*postedCall, string) {
	t.Helper()
	params, err := Codec.Append(nil, 1)
	require.NoError(t, err)
	m := c.posted(Job{Function: function, Params: params})
	require.NoError(t, m.setDeadline(time.Time{}, time.Hour))
	r := callReceipt{Name: "orders", Key: m.Key, Owner: m.Owner, Posted: m.at.UnixMilli(), Deadline: m.Deadline}
	return m, r.encode()
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
			on, err := a.js(t).Consumer(t.Context(), "asterisque_main_queue_orders", consumerName(1))
			require.NoError(t, err)
			return on.CachedInfo().Delivered.Consumer > 1
		}, natstest.Timeout, perLook, "it is handed out again")
		require.NoError(t, a.Close())
		s.takes("b", bookingtest.Answers("again"), handedOutSoon)
		require.Eventually(t, func() bool { return waiting(t, c) == 0 }, natstest.Timeout, perLook)
		requireResult(t, "booked", c, r)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestQueueLost_RunsElsewhere(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		m, r := bookingOf(t, c, bookingtest.Book.Number())
		q, _ := beginsPosted(t, c, m)
		_, err := c.publish(t.Context(), q, m)
		require.NoError(t, err)
		require.ErrorIs(t, c.Withdraw(t.Context(), r), ErrBegun)
		s.takes("a", bookingtest.Answers("booked"))
		requireResult(t, "booked", c, r)
		o, err := q.outcome(t.Context(), m.Key)
		require.NoError(t, err)
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
		for _, f := range []uint16{bookingtest.Book.Number(), bookingtest.Rebook.Number()} {
			m, r := bookingOf(t, c, f)
			q, o := beginsPosted(t, c, m)
			o.Since = long
			require.NoError(t, q.replace(t.Context(), m.Key, o))
			_, err := c.publish(t.Context(), q, m)
			require.NoError(t, err)
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
		m, r := bookingOf(t, c, 999)
		q, _ := beginsPosted(t, c, m)
		_, err := c.publish(t.Context(), q, m)
		require.NoError(t, err)
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
		m, r := bookingOf(t, c, bookingtest.Book.Number())
		q, o := beginsPosted(t, c, m)
		p, err := parseReceipt(r)
		require.NoError(t, err)
		p.Posted = time.Now().Add(-time.Minute).UnixMilli()
		p.Deadline = time.Now().Add(-outcomeGrace).UnixMilli()
		_, err = results(t, c, p.encode())
		bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, err)
		require.NoError(t, q.settle(t.Context(), m.Key, o.answered([]byte("late"), nil)), "the later write fails")
		_, err = results(t, c, r)
		bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, err)
	})
}

func TestQueueLost_TakenOver(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		m, r := bookingOf(t, c, bookingtest.Book.Number())
		q, o := beginsPosted(t, c, m)
		there, err := q.outcome(t.Context(), m.Key)
		require.NoError(t, err)
		require.NoError(t, q.replace(t.Context(), m.Key, there.takenOver("b")))
		require.Error(t, q.undecide(t.Context(), m.Key, o), "the call is another node's")
		text, err := Codec.Append(nil, "booked")
		require.NoError(t, err)
		require.NoError(t, q.settle(t.Context(), m.Key, o.answered(text, nil)))
		requireResult(t, "booked", c, r)
	})
}

func TestQueueLost_OutcomesGone(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		a, c := s.takes("a", bookingtest.Answers("booked"), handedOutSoon), s.customer()
		requireResult(t, "booked", c, posts(t, c, 1))
		require.NoError(t, a.js(t).DeleteKeyValue(t.Context(), "asterisque_main_results_orders"))
		requireResult(t, "booked", c, posts(t, c, 2))
	})
}

// laggingKV returns an old entry of a bucket for a while.
type laggingKV struct {
	jetstream.KeyValue
	had   jetstream.KeyValueEntry
	until time.Time
}

func (k *laggingKV) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	if time.Now().Before(k.until) {
		return k.had, nil
	}
	return k.KeyValue.Get(ctx, key)
}

func TestQueueLost_LaggingServer(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		m, r := bookingOf(t, c, bookingtest.Book.Number())
		q, o := beginsPosted(t, c, m)
		had, err := q.outcomes.Get(t.Context(), outcomeKey(m.Key))
		require.NoError(t, err)
		there, err := q.outcome(t.Context(), m.Key)
		require.NoError(t, err)
		require.NoError(t, q.replace(t.Context(), m.Key, there.takenOver("b")))
		text, err := Codec.Append(nil, "booked")
		require.NoError(t, err)
		lagging := *q
		lagging.outcomes = &laggingKV{q.outcomes, had, time.Now().Add(200 * time.Millisecond)}
		require.NoError(t, lagging.settle(t.Context(), m.Key, o.answered(text, nil)))
		requireResult(t, "booked", c, r)
	})
}
