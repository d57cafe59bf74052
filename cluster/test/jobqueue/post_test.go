package jobqueue_test

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/jobqueue"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

func TestPost_WithoutNodes(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		c := newBookings(t).customer()
		r := decodeReceipt(t, posts(t, c, 1))
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
		soonWaiting(t, c, 0)
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
		_, err = c.Post(t.Context(), "orders", jobqueue.Job{Function: 1, Params: make([]byte, c.nc.MaxPayload())})
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
		require.NoError(t, c.js.DeleteStream(t.Context(), queueStream))
		_, err := post(t.Context(), c, "orders", bookingtest.Book, 2)
		bookingtest.RequireUnused(t, asterisque.ErrUnavailable, err)
		posts(t, c, 2)
		require.Equal(t, uint64(1), waiting(t, c))
	})
}

func TestPost_Duplicate(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		lossy := new(lostAck)
		c := newBookings(t).customer(func(c *settings) {
			c.JetStream = func(js jetstream.JetStream) jetstream.JetStream {
				lossy.JetStream = js
				return lossy
			}
		})
		r := decodeReceipt(t, posts(t, c, 1, withDeadline(time.Now().Add(time.Minute))))
		require.Len(t, lossy.all, 2)
		require.Equal(t, lossy.all[0].Sequence, lossy.all[1].Sequence)
		require.Equal(t, lossy.all[0].Sequence, r.Sequence)
		id := message(t, c, r).Header.Get(jetstream.MsgIDHeader)
		require.Equal(t, hex.EncodeToString(r.Key), id)
		require.Equal(t, uint64(1), waiting(t, c))
	})
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
				posts(t, other, 2) // a poster accepts the limits as they are
				differs := s.requireDiffers(other)
				require.Equal(t, queueStream, differs.Bucket)
				require.Equal(t, what, differs.What)
			})
		})
	}
}

// requireDiffers expects that a node takes no calls because of a limit, which it returns.
func (s *bookings) requireDiffers(m *member) (differs *kv.LimitError) {
	s.t.Helper()
	node := asterisque.NewNode(s.With(bookingtest.Answers("booked")))
	defer node.Close()
	w, err := m.Work(s.t.Context(), jobqueue.WorkerConfig{Node: node, Name: "orders", ID: "a"})
	if err == nil {
		m.leave()
		w.Close()
		w.Wait()
	}
	require.ErrorAs(s.t, err, &differs)
	return differs
}

func TestQueues_OtherOutcomes(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]struct {
		own   func(*settings)
		queue func(*jetstream.StreamConfig) // makes the stream of calls agree
	}{
		"number of bytes": {
			own:   func(c *settings) { c.Queue.Bytes = 2 << 20 },
			queue: func(c *jetstream.StreamConfig) { c.MaxBytes = 2 << 20 },
		},
		"time to live": {
			own:   func(c *settings) { c.Queue.Longest = 2 * time.Hour },
			queue: func(c *jetstream.StreamConfig) { c.MaxAge = 2 * time.Hour },
		},
		"number of replicas": {
			own:   func(c *settings) { c.Replicas = 3 },
			queue: func(c *jetstream.StreamConfig) { c.Replicas = 3 },
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T) {
				s := newBookings(t)
				posts(t, s.customer(), 1)
				differs := s.requireDiffers(s.customer(change.own, func(c *settings) {
					c.JetStream = func(js jetstream.JetStream) jetstream.JetStream { return &otherQueue{js, change.queue} }
				}))
				require.Equal(t, outcomesBucket, differs.Bucket)
				require.Equal(t, what, differs.What)
				require.NotEqual(t, differs.Want, differs.Have)
			})
		})
	}
}
