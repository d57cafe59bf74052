package cluster_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/callstore"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// bookingTime is the time limit for conditions, on slow machines too: servers may have to elect a
// leader.
const bookingTime = 2 * time.Minute

// bookings are replicas of a name that share their records of durable calls.
type bookings struct {
	bookingtest.Service

	t testing.TB
	b *broker.Broker
}

func newBookings(t testing.TB) *bookings {
	return &bookings{t: t, b: natstest.StartServer(t, broker.Config{})}
}

// replica is one replica, with a session of a caller.
type replica struct {
	*cluster.Cluster
	t       testing.TB
	session *asterisque.Session
}

// replica joins a replica.
func (s *bookings) replica(id string, f bookingtest.Handler, change ...func(*cluster.Config)) *replica {
	s.t.Helper()
	return s.replicaFor(id, f, nil, nil, change...)
}

// replicaFor is replica with options for it, and for its caller.
func (s *bookings) replicaFor(id string, f bookingtest.Handler, opts, callers []asterisque.Option, change ...func(*cluster.Config)) *replica {
	s.t.Helper()
	cfg := listening(config(s.b, "orders", id))
	cfg.Durable = &cluster.Durable{Share: 1, Lease: callstore.LongestLease, Idempotent: []uint16{bookingtest.Rebook.Number()}, Remember: 2 * callstore.LongestLease}
	for _, by := range change {
		by(&cfg)
	}
	c := joined(s.t, cfg, append([]asterisque.Option{s.With(f)}, opts...)...)
	r := &replica{Cluster: c, t: s.t}
	r.session = r.dialled(callers...)
	return r
}

// dialled returns a session of a new caller with the replica.
func (r *replica) dialled(opts ...asterisque.Option) *asterisque.Session {
	r.t.Helper()
	node := asterisque.NewNode(opts...)
	r.t.Cleanup(func() { node.Close() })
	s, err := node.Dial(r.t.Context(), address(r.Cluster))
	require.NoError(r.t, err)
	return s
}

// leaseOf sets the lease of a replica.
func leaseOf(d time.Duration) func(*cluster.Config) {
	return func(c *cluster.Config) { c.Durable.Lease = d }
}

// books makes a call with a key.
func (r *replica) books(key []byte) (string, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), bookingTime)
	defer cancel()
	return bookingtest.Book.Call(ctx, r.session, 1, asterisque.WithIdempotencyKey(key))
}

// begins makes a call with a key, and returns once that number of calls has begun in total.
func (s *bookings) begins(r *replica, key []byte, runs int64) <-chan bookingtest.Outcome {
	s.t.Helper()
	return s.Begins(s.t, runs, func() (string, error) { return r.books(key) })
}

// awaitWatches waits until n repetitions wait, at all replicas.
func (r *replica) awaitWatches(n int) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		s, err := jetStream(r.t, r.Cluster).Stream(r.t.Context(), "KV_asterisque_main_calls_orders")
		return err == nil && s.CachedInfo().State.Consumers == n
	}, bookingTime, time.Millisecond)
}

// written returns a file with a text, such as the configuration of a NATS server.
func written(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats-server.conf")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// perLook is the polling interval of tests.
const perLook = 10 * time.Millisecond
