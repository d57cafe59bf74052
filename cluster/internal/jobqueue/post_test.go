package jobqueue

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

func TestPost_WithoutNodes(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		c := newBookings(t).customer()
		r, err := parseReceipt(posts(t, c, 1))
		require.NoError(t, err)
		require.Equal(t, "orders", r.Name)
		require.NotZero(t, r.Sequence)
		require.Equal(t, uint64(1), waiting(t, c))
	})
}

func TestPost_FullQueue(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		c := newBookings(t).customer()
		for n := range 8 {
			posts(t, c, n)
		}
		r, err := post(t.Context(), c, "orders", bookingtest.Book, 8)
		bookingtest.RequireUnused(t, asterisque.ErrOverloaded, err)
		require.Empty(t, r)
	})
}

func TestPost_DeadlineExpires(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		c := newBookings(t).customer()
		posts(t, c, 1, withDeadline(time.Now().Add(3*time.Second)))
		require.Eventually(t, func() bool { return waiting(t, c) == 0 }, natstest.Timeout, 10*time.Millisecond)
	})
}

func TestPost_Errors(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		c := newBookings(t).customer()
		_, err := post(t.Context(), c, "orders", bookingtest.Book, 1, withDeadline(time.Now().Add(2*time.Hour)))
		bookingtest.RequireUnused(t, asterisque.ErrBadParams, err)
		_, err = post(t.Context(), c, "orders", bookingtest.Book, 1, withDeadline(time.Now().Add(-time.Second)))
		bookingtest.RequireUnused(t, asterisque.ErrExpired, err)
		_, err = post(t.Context(), c, "or.ders", bookingtest.Book, 1)
		bookingtest.RequireUnused(t, asterisque.ErrBadParams, err)
		_, err = c.Post(t.Context(), "orders", Job{Function: 1, Params: make([]byte, c.nc.MaxPayload())})
		bookingtest.RequireUnused(t, asterisque.ErrTooLarge, err)
	})
}

func TestPost_WithoutNATS(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		posts(t, c, 1)
		require.NoError(t, s.b.Close())
		require.Eventually(t, func() bool { return !c.nc.IsConnected() }, natstest.Timeout, time.Millisecond)
		r, err := post(t.Context(), c, "orders", bookingtest.Book, 2)
		bookingtest.RequireUnused(t, asterisque.ErrUnavailable, err)
		require.Empty(t, r)
	})
}

func TestQueue_CreatedAgain(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		c := newBookings(t).customer()
		posts(t, c, 1)
		require.NoError(t, c.links.JetStream.DeleteStream(t.Context(), "asterisque_main_queue_orders"))
		_, err := post(t.Context(), c, "orders", bookingtest.Book, 2)
		bookingtest.RequireUnused(t, asterisque.ErrUnavailable, err)
		posts(t, c, 2)
		require.Equal(t, uint64(1), waiting(t, c))
	})
}

func TestPost_Duplicate(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		c := newBookings(t).customer()
		q, err := c.queueOf(t.Context(), "orders")
		require.NoError(t, err)
		m := c.posted(Job{Function: bookingtest.Book.Number()})
		require.NoError(t, m.setDeadline(time.Time{}, time.Minute))
		first, err := c.publish(t.Context(), q, m)
		require.NoError(t, err)
		again, err := c.publish(t.Context(), q, m)
		require.NoError(t, err)
		require.Equal(t, first, again)
		require.Equal(t, uint64(1), waiting(t, c))
	})
}

func TestReceipt_Invalid(t *testing.T) {
	t.Parallel()
	r := callReceipt{Name: "orders", Key: newQueueKey(), Posted: 1, Deadline: 2}
	good := r.encode()
	_, err := parseReceipt(good)
	require.NoError(t, err)
	short := r
	short.Key = short.Key[:8]
	for _, text := range []string{"", "x", good[1:], good[:len(good)-4], receiptMark, receiptMark + "e30", short.encode(), strings.Repeat(good, 20)} {
		_, err := parseReceipt(text)
		require.ErrorIs(t, err, asterisque.ErrBadParams, text)
	}
}

func TestQueues_OtherLimits(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*settings){
		"number of calls":    func(c *settings) { c.Queue.Calls = 9 },
		"number of bytes":    func(c *settings) { c.Queue.Bytes = 2 << 20 },
		"time to live":       func(c *settings) { c.Queue.Longest = 2 * time.Hour },
		"number of replicas": func(c *settings) { c.Replicas = 3 },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T) {
				s := newBookings(t)
				posts(t, s.customer(), 1)
				other := s.customer(change)
				_, err := other.openQueue(t.Context(), "orders", kv.OpenStream, false)
				require.NoError(t, err, "a poster accepts the limits as they are")
				_, err = other.openQueue(t.Context(), "orders", kv.OpenStream, true)
				var differs *kv.LimitError
				require.ErrorAs(t, err, &differs)
				require.Equal(t, "asterisque_main_queue_orders", differs.Bucket)
				require.Equal(t, what, differs.What)
			})
		})
	}
}

func TestQueues_OtherOutcomes(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*settings){
		"number of bytes":    func(c *settings) { c.Queue.Bytes = 2 << 20 },
		"time to live":       func(c *settings) { c.Queue.Longest = 2 * time.Hour },
		"number of replicas": func(c *settings) { c.Replicas = 3 },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T) {
				s := newBookings(t)
				c := s.customer()
				posts(t, c, 1)
				bucket := "asterisque_main_results_orders"
				have, err := c.js(t).Stream(t.Context(), "KV_"+bucket)
				require.NoError(t, err)
				other := s.customer(change)
				err = other.checkOutcomes(bucket, have.CachedInfo().Config, other.outcomesStream(bucket, other.cfg.Plan), true)
				var differs *kv.LimitError
				require.ErrorAs(t, err, &differs)
				require.Equal(t, bucket, differs.Bucket)
				require.Equal(t, what, differs.What)
				require.NotEqual(t, differs.Want, differs.Have)
			})
		})
	}
}
