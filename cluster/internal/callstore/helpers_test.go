package callstore

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/wire"
)

// bookingTime is the time limit for conditions, on slow machines too: servers may have to elect a
// leader.
const bookingTime = 2 * time.Minute

// bookings are replicas of a name that share their records of durable calls.
type bookings struct {
	bookingtest.Service

	t    testing.TB
	b    *broker.Broker // nil in a process of its own
	urls string         // of several servers; empty: that of b
}

func newBookings(t testing.TB) *bookings {
	return &bookings{t: t, b: natstest.StartServer(t, broker.Config{})}
}

// replica is a node with a registry, and with a session of a caller.
type replica struct {
	*Registry
	t       testing.TB
	nc      *nats.Conn
	node    *asterisque.Node
	url     string
	leave   context.CancelFunc
	session *asterisque.Session
	kv      *natstest.FaultyKV // its bucket
}

// replica starts a replica.
func (s *bookings) replica(id string, f bookingtest.Handler, change ...func(*Config)) *replica {
	s.t.Helper()
	return s.replicaFor(id, f, nil, nil, change...)
}

// config returns the configuration of a replica.
func (s *bookings) config(id string, change ...func(*Config)) Config {
	cfg := Config{
		Plan: Plan{
			Share: 1, Lease: LongestLease, Remember: 2 * LongestLease,
			Calls: 1 << 16, Bytes: 64 << 20, Idempotent: []uint16{bookingtest.Rebook.Number()},
		},
		Bucket: "calls_orders", Cluster: "production", Replicas: 1, Storage: jetstream.MemoryStorage,
		Node: id, Instance: rand.Text(), Closed: errors.New("the node has left"),
	}
	for _, by := range change {
		by(&cfg)
	}
	return cfg
}

// links connects a replica to NATS, until life ends.
func (s *bookings) links(life context.Context) Links {
	s.t.Helper()
	url, opts := s.urls, []nats.Option(nil)
	if url == "" {
		url, opts = s.b.URL(), natstest.Reaching(s.b)
	}
	nc, err := nats.Connect(url, append(opts, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))...)
	require.NoError(s.t, err)
	s.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(s.t, err)
	return Links{NATS: nc, JetStream: js, Life: life, Logger: slog.New(slog.DiscardHandler)}
}

// replicaFor is replica with options for it, and for its caller.
func (s *bookings) replicaFor(id string, f bookingtest.Handler, opts, callers []asterisque.Option, change ...func(*Config)) *replica {
	s.t.Helper()
	life, leave := context.WithCancel(context.Background())
	links := s.links(life)
	r := &replica{Registry: New(s.config(id, change...)), t: s.t, nc: links.NATS, leave: leave}
	r.node = asterisque.NewNode(append([]asterisque.Option{
		s.With(f), asterisque.WithID(id), asterisque.WithInboundInterceptors(r.Intercept),
	}, opts...)...)
	s.t.Cleanup(r.Close)
	ctx, cancel := context.WithTimeout(s.t.Context(), natstest.Timeout)
	defer cancel()
	require.NoError(s.t, r.Open(ctx, links))
	r.kv = &natstest.FaultyKV{KeyValue: r.bucket.Bucket()}
	r.keepIn(r.kv)
	at := "mem://" + strings.ToLower(rand.Text())
	if s.b == nil {
		at = "tcp://127.0.0.1:0" // a process of its own
	}
	ln, err := wire.Listen(ctx, at, wire.Options{})
	require.NoError(s.t, err)
	r.url = ln.URL()
	go r.node.Serve(life, ln) // ends with life
	r.session = r.dialled(callers...)
	return r
}

// Close ends the replica like the node of a cluster.
func (r *replica) Close() {
	r.leave()
	r.node.Close()
	r.Registry.Close()
	r.nc.Close()
}

// vanish ends the replica like a crash.
func (r *replica) vanish() {
	r.nc.Close()
	r.Close()
}

// keepIn makes the replica keep its records in a bucket.
func (r *replica) keepIn(kv jetstream.KeyValue) {
	r.t.Helper()
	var err error
	r.bucket, err = newStore(r.nc, kv)
	require.NoError(r.t, err)
}

// dialled returns a session of a new caller with the replica.
func (r *replica) dialled(opts ...asterisque.Option) *asterisque.Session {
	r.t.Helper()
	node := asterisque.NewNode(opts...)
	r.t.Cleanup(func() { node.Close() })
	s, err := node.Dial(r.t.Context(), r.url)
	require.NoError(r.t, err)
	return s
}

// leaseOf sets the lease of a replica.
func leaseOf(d time.Duration) func(*Config) {
	return func(c *Config) { c.Plan.Lease = d }
}

// books makes a call with a key.
func (r *replica) books(key []byte) (string, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), bookingTime)
	defer cancel()
	return bookingtest.Book.Call(ctx, r.session, 1, asterisque.WithIdempotencyKey(key))
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
	require.Eventually(s.t, func() bool { return s.Runs.Load() == runs }, bookingTime, time.Millisecond)
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

// booksAtLast repeats a call while NATS is too busy to report the outcome of the call before.
func (r *replica) booksAtLast(key []byte) (text string, err error) {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		if text, err = r.books(key); !asterisque.Repeatable(err) {
			break
		}
	}
	return text, err
}

// state returns the state of a call's record.
func (r *replica) state(key []byte) state {
	e, err := r.bucket.read(context.Background(), r.callOf("", key, 0, nil).name)
	if err != nil || e.record == nil {
		return ""
	}
	return e.record.State
}

// awaitWaiters waits until n repetitions wait.
func (r *replica) awaitWaiters(n int) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return len(r.waiters) == n }, bookingTime, time.Millisecond)
}

// revision returns the revision of a call's record.
func (r *replica) revision(key []byte) uint64 {
	e, err := r.bucket.read(context.Background(), r.callOf("", key, 0, nil).name)
	if err != nil {
		return 0
	}
	return e.revision
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
