package cluster

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/callstore"
	"github.com/asterisque-go/asterisque/cluster/internal/test/natstest"
)

// book runs once for each call. rebook may run more than once.
var (
	book   = asterisque.Func[int, string](20, "book")
	rebook = asterisque.Func[int, string](21, "rebook")
)

// bookingTime is the time limit for conditions, on slow machines too: servers may have to elect a
// leader.
const bookingTime = 2 * time.Minute

// bookings are replicas of a name that share their records of durable calls.
type bookings struct {
	t    testing.TB
	b    *broker.Broker
	runs atomic.Int64 // calls that have begun, at any replica

	within asterisque.Interceptor // interceptor of the functions of the next replica; nil: none
}

func newBookings(t testing.TB) *bookings {
	return &bookings{t: t, b: natstest.StartServer(t, broker.Config{})}
}

// replica is one replica, with a session of a caller.
type replica struct {
	*Cluster
	t       testing.TB
	session *asterisque.Session
}

// does is the handler of a replica.
type does func(ctx context.Context, n int) (string, error)

func answers(text string) does {
	return func(context.Context, int) (string, error) { return text, nil }
}

// holds answers after release, or at the end of its context.
func holds(text string) (f does, release func()) {
	free := make(chan struct{})
	f = func(ctx context.Context, _ int) (string, error) {
		select {
		case <-free:
			return text, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return f, func() { close(free) }
}

// replica joins a replica.
func (s *bookings) replica(id string, f does, change ...func(*Config)) *replica {
	s.t.Helper()
	return s.replicaFor(id, f, nil, nil, change...)
}

// replicaFor is replica with options for it, and for its caller.
func (s *bookings) replicaFor(id string, f does, opts, callers []asterisque.Option, change ...func(*Config)) *replica {
	s.t.Helper()
	cfg := listening(config(s.b, "orders", id))
	cfg.Durable = &Durable{InMemory: true, Share: 1, Lease: callstore.LongestLease, Idempotent: []uint16{rebook.Number()}, Remember: 2 * callstore.LongestLease}
	for _, by := range change {
		by(&cfg)
	}
	c := joined(s.t, cfg, append([]asterisque.Option{s.service(f)}, opts...)...)
	r := &replica{Cluster: c, t: s.t}
	r.session = r.dialled(callers...)
	return r
}

// service returns an option by which a node runs the functions with f, and counts the calls.
func (s *bookings) service(f does) asterisque.Option {
	svc := asterisque.NewService()
	if s.within != nil {
		svc.Intercept(s.within)
	}
	counted := func(ctx context.Context, n int) (string, error) {
		s.runs.Add(1)
		return f(ctx, n)
	}
	book.Handle(svc, counted)
	rebook.Handle(svc, counted)
	return asterisque.WithService(svc)
}

// dialled returns a session of a new caller with the replica.
func (r *replica) dialled(opts ...asterisque.Option) *asterisque.Session {
	r.t.Helper()
	node := asterisque.NewNode(opts...)
	r.t.Cleanup(func() { node.Close() })
	s, err := node.Dial(r.t.Context(), r.self.Addresses()[0])
	require.NoError(r.t, err)
	return s
}

// leaseOf sets the lease of a replica.
func leaseOf(d time.Duration) func(*Config) {
	return func(c *Config) { c.Durable.Lease = d }
}

// aKey returns a random key.
func aKey() []byte { return []byte(rand.Text()[:16]) }

// books makes a call with a key.
func (r *replica) books(key []byte) (string, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), bookingTime)
	defer cancel()
	return book.Call(ctx, r.session, 1, asterisque.WithIdempotencyKey(key))
}

// outcome is the outcome of a call on another goroutine.
type outcome struct {
	text string
	err  error
}

// begins makes a call with a key, and returns once that number of calls has begun in total.
func (s *bookings) begins(r *replica, key []byte, runs int64) <-chan outcome {
	s.t.Helper()
	out := make(chan outcome, 1)
	go func() { // ends with the call
		text, err := r.books(key)
		out <- outcome{text, err}
	}()
	require.Eventually(s.t, func() bool { return s.runs.Load() == runs }, bookingTime, time.Millisecond)
	return out
}

// requireText expects that a call has succeeded.
func requireText(t testing.TB, want string, out <-chan outcome) {
	t.Helper()
	select {
	case got := <-out:
		require.NoError(t, got.err)
		require.Equal(t, want, got.text)
	case <-time.After(bookingTime):
		t.Fatal("the call is not over")
	}
}

// requireUnused expects that a call was rejected before it ran.
func requireUnused(t testing.TB, want error, err error) {
	t.Helper()
	require.ErrorIs(t, err, want)
	require.True(t, asterisque.Repeatable(err), "%v", err)
}

// requireMayHaveRun expects that a call may have run.
func requireMayHaveRun(t testing.TB, want error, err error) {
	t.Helper()
	require.ErrorIs(t, err, want)
	require.False(t, asterisque.Repeatable(err), "%v", err)
}

// awaitWatches waits until n repetitions wait, at all replicas.
func (r *replica) awaitWatches(n int) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		s, err := r.js(r.t).Stream(r.t.Context(), "KV_asterisque_main_calls_orders")
		return err == nil && s.CachedInfo().State.Consumers == n
	}, bookingTime, time.Millisecond)
}

// bySubject returns options of a replica that trusts the identities of callers, and of a caller.
func bySubject(name string) (replica, caller []asterisque.Option) {
	return []asterisque.Option{asterisque.WithAccess(asterisque.Access{
			PlainCredentials: true,
			Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
				return &asterisque.Grant{Subject: string(p.Credential)}, nil
			},
		})}, []asterisque.Option{asterisque.WithAccess(asterisque.Access{
			PlainCredentials: true,
			Credential:       func(context.Context, asterisque.Peer) ([]byte, error) { return []byte(name), nil },
		})}
}

// inFiles makes a bucket survive its server.
func inFiles(c *Config) { c.Durable.InMemory = false }

// newLastingBookings returns bookings with a server that can be restarted, and the configuration
// for the restart.
func newLastingBookings(t testing.TB) (*bookings, broker.Config) {
	dir := t.TempDir()
	b := natstest.StartServer(t, broker.Config{Dir: dir})
	return &bookings{t: t, b: b}, natstest.Restarted(b, dir)
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
