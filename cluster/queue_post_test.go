package cluster

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/internal/test/natstest"
)

func TestPost_WithoutNodes(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		c := joined(t, queueing(config(natstest.StartServer(t, broker.Config{}), "", "")))
		r, err := posts(t, c, 1).parse()
		require.NoError(t, err)
		require.Equal(t, "orders", r.Name)
		require.NotZero(t, r.Sequence)
		require.Equal(t, uint64(1), waiting(t, c))
	})
}

func TestPost_FullQueue(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		c := joined(t, queueing(config(natstest.StartServer(t, broker.Config{}), "", "")))
		for n := range 8 {
			posts(t, c, n)
		}
		r, err := Post(t.Context(), c, "orders", book, 8)
		requireUnused(t, asterisque.ErrOverloaded, err)
		require.Empty(t, r)
	})
}

func TestPost_DeadlineExpires(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		c := joined(t, queueing(config(natstest.StartServer(t, broker.Config{}), "", "")))
		posts(t, c, 1, WithDeadline(time.Now().Add(3*time.Second)))
		require.Eventually(t, func() bool { return waiting(t, c) == 0 }, natstest.Timeout, 10*time.Millisecond)
	})
}

func TestPost_Errors(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		c := joined(t, queueing(config(natstest.StartServer(t, broker.Config{}), "", "")))
		_, err := Post(t.Context(), c, "orders", book, 1, WithDeadline(time.Now().Add(2*time.Hour)))
		requireUnused(t, asterisque.ErrBadParams, err)
		_, err = Post(t.Context(), c, "orders", book, 1, WithDeadline(time.Now().Add(-time.Second)))
		requireUnused(t, asterisque.ErrExpired, err)
		_, err = Post(t.Context(), c, "or.ders", book, 1)
		requireUnused(t, asterisque.ErrBadParams, err)
		_, err = c.Post(t.Context(), "orders", 1, make([]byte, c.nc.MaxPayload()))
		requireUnused(t, asterisque.ErrTooLarge, err)
	})
}

func TestPost_WithoutNATS(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		c := joined(t, queueing(config(b, "", "")))
		posts(t, c, 1)
		require.NoError(t, b.Close())
		require.Eventually(t, func() bool { return !c.nc.IsConnected() }, natstest.Timeout, time.Millisecond)
		r, err := Post(t.Context(), c, "orders", book, 2)
		requireUnused(t, asterisque.ErrUnavailable, err)
		require.Empty(t, r)
	})
}

func TestQueue_CreatedAgain(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		c := joined(t, queueing(config(natstest.StartServer(t, broker.Config{}), "", "")))
		posts(t, c, 1)
		require.NoError(t, c.buckets.js.DeleteStream(t.Context(), "asterisque_main_queue_orders"))
		_, err := Post(t.Context(), c, "orders", book, 2)
		requireUnused(t, asterisque.ErrUnavailable, err)
		posts(t, c, 2)
		require.Equal(t, uint64(1), waiting(t, c))
	})
}

func TestPost_Duplicate(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		c := joined(t, queueing(config(natstest.StartServer(t, broker.Config{}), "", "")))
		q, err := c.queueOf(t.Context(), "orders")
		require.NoError(t, err)
		m := c.posted(book.Number(), nil)
		require.NoError(t, m.apply(nil, time.Minute))
		first, err := c.post(t.Context(), q, m)
		require.NoError(t, err)
		again, err := c.post(t.Context(), q, m)
		require.NoError(t, err)
		require.Equal(t, first, again)
		require.Equal(t, uint64(1), waiting(t, c))
	})
}

func TestPost_OtherLimits(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		c := joined(t, queueing(config(b, "", "")))
		posts(t, c, 1)
		other := config(b, "", "")
		other.Queue = &Queue{Calls: 9}
		posts(t, joined(t, other), 1)
		_, err := c.openQueue(t.Context(), "orders", kv.OpenStream, true)
		require.NoError(t, err)
		joinedOther := joined(t, other)
		_, err = joinedOther.openQueue(t.Context(), "orders", kv.OpenStream, true)
		var differs *kv.LimitError
		require.ErrorAs(t, err, &differs)
		require.Equal(t, kv.LimitError{Bucket: "asterisque_main_queue_orders", What: "number of calls", Want: "9", Have: "8"}, *differs)
	})
}

func TestQueue_Limits(t *testing.T) {
	t.Parallel()
	for _, q := range []Queue{{Calls: -1}, {Bytes: 1}, {Longest: time.Millisecond}, {Longest: 365 * 24 * time.Hour}} {
		_, err := Join(context.Background(), Config{Queue: &q})
		require.ErrorContains(t, err, "Queue.")
	}
	_, err := Join(context.Background(), Config{Name: "orders", Queue: &Queue{}})
	require.ErrorContains(t, err, "Config.Durable")
}

func TestReceipt_Invalid(t *testing.T) {
	t.Parallel()
	r := callReceipt{Name: "orders", Key: newQueueKey(), Posted: 1, Deadline: 2}
	good := r.encode()
	_, err := good.parse()
	require.NoError(t, err)
	short := r
	short.Key = short.Key[:8]
	for _, text := range []Receipt{"", "x", good[1:], good[:len(good)-4], receiptMark, receiptMark + "e30", short.encode(), Receipt(strings.Repeat(string(good), 20))} {
		_, err := text.parse()
		require.ErrorIs(t, err, asterisque.ErrBadParams, text)
	}
}
