package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// queueing makes a node take posted calls, and post with these limits.
func queueing(cfg cluster.Config) cluster.Config {
	cfg.Queue = &cluster.Queue{Calls: 8, Bytes: 1 << 20, Longest: time.Hour}
	if cfg.Name != "" {
		cfg.Durable = &cluster.Durable{Bytes: 1 << 20, Share: 1}
	}
	return cfg
}

// takes joins a node of orders that takes posted calls, from its start.
func (s *bookings) takes(id string, f bookingtest.Handler, change ...func(*cluster.Config)) *cluster.Cluster {
	s.t.Helper()
	cfg := queueing(config(s.b, "orders", id))
	for _, by := range change {
		by(&cfg)
	}
	return joined(s.t, cfg, s.With(f))
}

// customer joins a node that only posts.
func (s *bookings) customer(change ...func(*cluster.Config)) *cluster.Cluster {
	s.t.Helper()
	cfg := queueing(config(s.b, "", ""))
	cfg.Identity = "customer"
	for _, by := range change {
		by(&cfg)
	}
	return joined(s.t, cfg)
}

// posts posts a call, or fails.
func posts(t testing.TB, c *cluster.Cluster, n int, opts ...cluster.PostOption) cluster.Receipt {
	t.Helper()
	r, err := cluster.Post(t.Context(), c, "orders", bookingtest.Book, n, opts...)
	require.NoError(t, err)
	return r
}

// waiting returns the number of calls that wait for orders.
func waiting(t testing.TB, c *cluster.Cluster) uint64 {
	t.Helper()
	s, err := jetStream(t, c).Stream(t.Context(), "asterisque_main_queue_orders")
	require.NoError(t, err)
	return s.CachedInfo().State.Msgs
}

// results waits for the outcome of a posted call.
func results(t testing.TB, c *cluster.Cluster, r cluster.Receipt) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), bookingTime)
	defer cancel()
	return cluster.Result(ctx, c, bookingtest.Book, r)
}

// requireResult expects that a posted call has succeeded.
func requireResult(t testing.TB, want string, c *cluster.Cluster, r cluster.Receipt) {
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
		require.Eventually(t, func() bool { return waiting(t, a) == 0 }, natstest.Timeout, 10*time.Millisecond)
		require.EqualValues(t, 1, s.Runs.Load())
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
		<-a.Node().Draining()
		later := posts(t, c, 2)
		release()
		require.NoError(t, <-left)
		requireResult(t, "at a", c, r)
		s.takes("b", bookingtest.Answers("at b"))
		requireResult(t, "at b", c, later)
	})
}

func TestQueue_JoinOtherLimits(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		posts(t, s.customer(), 1)
		cfg := queueing(config(s.b, "orders", "a"))
		cfg.Queue.Calls = 9
		_, err := cluster.Join(t.Context(), cfg)
		var differs *cluster.BucketError
		require.ErrorAs(t, err, &differs)
		require.Equal(t, "number of calls", differs.What)
	})
}

func TestQueue_JoinOtherOutcomes(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		posts(t, c, 1)
		stream, err := jetStream(t, c).Stream(t.Context(), "KV_asterisque_main_results_orders")
		require.NoError(t, err)
		smaller := stream.CachedInfo().Config
		smaller.MaxBytes = 1 << 20
		_, err = jetStream(t, c).UpdateStream(t.Context(), smaller)
		require.NoError(t, err)
		_, err = cluster.Join(t.Context(), queueing(config(s.b, "orders", "a")))
		var differs *cluster.BucketError
		require.ErrorAs(t, err, &differs)
		require.Equal(t, cluster.BucketError{Bucket: "asterisque_main_results_orders", What: "number of bytes", Want: "1310736", Have: "1048576"}, *differs)
	})
}

func TestQueue_WithoutJetStream(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{ConfigFile: written(t, "accounts { asterisque { users: [ { user: all, password: secret } ] } }\nno_auth_user: all")})
		_, err := cluster.Join(t.Context(), queueing(config(b, "orders", "a")))
		require.ErrorIs(t, err, cluster.ErrNoJetStream)
	})
}

func TestQueue_PeerRefused(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		_, err := cluster.Join(t.Context(), queueing(config(s.b, "orders", "a")), asterisque.WithAccess(asterisque.Access{
			Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
				return nil, asterisque.ErrUnauthorized
			},
		}))
		require.ErrorIs(t, err, asterisque.ErrUnauthorized)
		require.ErrorContains(t, err, `"queue"`)
	})
}

func TestQueue_Limits(t *testing.T) {
	t.Parallel()
	for _, q := range []cluster.Queue{{Calls: -1}, {Bytes: 1}, {Longest: time.Millisecond}, {Longest: 365 * 24 * time.Hour}} {
		_, err := cluster.Join(context.Background(), cluster.Config{Queue: &q})
		require.ErrorContains(t, err, "Queue.")
	}
	_, err := cluster.Join(context.Background(), cluster.Config{Name: "orders", Queue: &cluster.Queue{}})
	require.ErrorContains(t, err, "Config.Durable")
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
		require.ErrorIs(t, err, cluster.ErrWithdrawn)

		f, release := bookingtest.Holds("booked")
		s.takes("a", f)
		r = posts(t, c, 2)
		require.Eventually(t, func() bool { return s.Runs.Load() == 1 }, natstest.Timeout, time.Millisecond)
		require.ErrorIs(t, c.Withdraw(t.Context(), r), cluster.ErrBegun)
		release()
		requireResult(t, "booked", c, r)
		require.ErrorIs(t, c.Withdraw(t.Context(), r), cluster.ErrBegun)
	})
}

func TestReceipt_AfterRestart(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		written := string(posts(t, c, 1)) // such as in a file
		later := string(posts(t, c, 2))
		require.NoError(t, c.Close())
		_, err := c.Result(t.Context(), cluster.Receipt(written))
		require.ErrorIs(t, err, cluster.ErrClosed)

		again := s.customer()
		require.NoError(t, again.Withdraw(t.Context(), cluster.Receipt(later)))
		s.takes("a", bookingtest.Answers("booked"))
		requireResult(t, "booked", again, cluster.Receipt(written))
		_, err = results(t, again, cluster.Receipt(later))
		require.ErrorIs(t, err, cluster.ErrWithdrawn)
	})
}

func TestReceipt_OtherIdentity(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		r := posts(t, c, 1)
		other := s.customer(func(c *cluster.Config) { c.Identity = "other" })
		require.NoError(t, s.b.Close())
		_, err := other.Result(t.Context(), r)
		require.ErrorIs(t, err, cluster.ErrNotYours)
		require.ErrorIs(t, other.Withdraw(t.Context(), r), cluster.ErrNotYours)
	})
}

func TestPosterOf_Handler(t *testing.T) {
	t.Parallel()
	s := newBookings(t)
	c := s.customer()
	seen := make(chan cluster.Poster, 1)
	a := s.takes("a", func(ctx context.Context, _ int) (string, error) {
		by, ok := cluster.PosterOf(ctx)
		if ok {
			seen <- by
			return "posted", nil
		}
		return "called", nil
	}, func(c *cluster.Config) { *c = listening(*c) })
	requireResult(t, "posted", c, posts(t, c, 1))
	require.Equal(t, cluster.Poster{Identity: "customer", ID: c.ID()}, <-seen)
	forger := asterisque.NewNode(asterisque.WithID("queue"))
	defer forger.Close()
	on, err := forger.Dial(t.Context(), address(a))
	require.NoError(t, err)
	text, err := bookingtest.Book.Call(t.Context(), on, 1, asterisque.WithMetadata(asterisque.Metadata{"asterisque.posted-by": `{"identity":"customer","id":"x"}`}))
	require.NoError(t, err)
	require.Equal(t, "called", text)
	_, ok := cluster.PosterOf(t.Context())
	require.False(t, ok)
}

func TestPost_OtherBucket(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		stream, err := jetStream(t, c).CreateStream(t.Context(), jetstream.StreamConfig{
			Name: "asterisque_main_queue_orders", Subjects: []string{"asterisque.queue.main.orders.*"}, Storage: jetstream.MemoryStorage,
			Metadata: map[string]string{kv.ClusterKey: "asterisque"},
		})
		require.NoError(t, err)
		_, err = cluster.Post(t.Context(), c, "orders", bookingtest.Book, 1)
		bookingtest.RequireUnused(t, asterisque.ErrUnavailable, err)
		var differs *cluster.BucketError
		require.ErrorAs(t, err, &differs)
		require.Equal(t, stream.CachedInfo().Config.Name, differs.Bucket)
	})
}

func TestQueue_ErrorOfExpiredPost(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		_, expired := results(t, c, posts(t, c, 1, cluster.WithDeadline(time.Now().Add(2*time.Second))))
		bookingtest.RequireUnused(t, asterisque.ErrExpired, expired)
		fails := func(context.Context, int) (string, error) { return "", expired }
		a, b := s.replica("a", fails), s.replica("b", bookingtest.Answers("at b"))
		key := bookingtest.Key()
		for _, r := range []*replica{a, b} {
			_, err := r.books(key)
			bookingtest.RequireMayHaveRun(t, asterisque.ErrExpired, err)
		}
		require.EqualValues(t, 1, s.Runs.Load())
	})
}
