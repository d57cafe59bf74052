package callstore_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/callstore"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
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

	t      testing.TB
	b      *broker.Broker                              // nil in a process of its own
	urls   string                                      // of several servers; empty: that of b
	bucket func(jetstream.KeyValue) jetstream.KeyValue // wraps that of the next replica, if set
}

func newBookings(t testing.TB) *bookings {
	return &bookings{t: t, b: natstest.StartServer(t, broker.Config{})}
}

// replica is a node with a registry, and with a session of a caller.
type replica struct {
	*callstore.Registry
	t       testing.TB
	nc      *nats.Conn
	js      jetstream.JetStream
	node    *asterisque.Node
	url     string
	leave   context.CancelFunc
	session *asterisque.Session
	kv      *natstest.FaultyKV // its bucket
	records *kv.Store          // the same bucket, as it is read without faults
}

// replica starts a replica.
func (s *bookings) replica(id string, f bookingtest.Handler, change ...func(*callstore.Config)) *replica {
	s.t.Helper()
	return s.replicaFor(id, f, nil, nil, change...)
}

// bucketName is the name of the bucket.
const bucketName = "calls_orders"

// config returns the configuration of a replica.
func (s *bookings) config(id string, change ...func(*callstore.Config)) callstore.Config {
	cfg := callstore.Config{
		Plan: callstore.Plan{
			Share: 1, Lease: callstore.LongestLease, Remember: 2 * callstore.LongestLease,
			Calls: 1 << 16, Bytes: 64 << 20, Idempotent: []uint16{bookingtest.Rebook.Number()},
		},
		Bucket: bucketName, Cluster: "production", Replicas: 1, Storage: jetstream.MemoryStorage,
		Node: id, Instance: rand.Text(), Closed: errors.New("the node has left"),
	}
	for _, by := range change {
		by(&cfg)
	}
	return cfg
}

// links connects a replica to NATS, until life ends.
func (s *bookings) links(life context.Context) callstore.Links {
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
	return callstore.Links{NATS: nc, JetStream: js, Life: life, Logger: slog.New(slog.DiscardHandler)}
}

// replicaFor is replica with options for it, and for its caller.
func (s *bookings) replicaFor(id string, f bookingtest.Handler, opts, callers []asterisque.Option, change ...func(*callstore.Config)) *replica {
	s.t.Helper()
	life, leave := context.WithCancel(context.Background())
	links := s.links(life)
	js := &faultyJetStream{JetStream: links.JetStream, wrap: s.bucket}
	r := &replica{Registry: callstore.New(s.config(id, change...)), t: s.t, nc: links.NATS, js: links.JetStream, leave: leave}
	links.JetStream = js
	r.node = asterisque.NewNode(append([]asterisque.Option{
		s.With(f), asterisque.WithID(id), asterisque.WithInboundInterceptors(r.Intercept),
	}, opts...)...)
	s.t.Cleanup(r.Close)
	ctx, cancel := context.WithTimeout(s.t.Context(), natstest.Timeout)
	defer cancel()
	require.NoError(s.t, r.Open(ctx, links))
	r.kv = js.opened
	var err error
	r.records, err = kv.NewStore(r.nc, r.kv.KeyValue)
	require.NoError(s.t, err)
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

// faultyJetStream is JetStream with a bucket that fails on demand.
type faultyJetStream struct {
	jetstream.JetStream
	wrap func(jetstream.KeyValue) jetstream.KeyValue // wraps the bucket, if set

	once   sync.Once
	opened *natstest.FaultyKV // the bucket, when it was opened first
}

// KeyValue implements jetstream.JetStream.
func (js *faultyJetStream) KeyValue(ctx context.Context, bucket string) (jetstream.KeyValue, error) {
	b, err := js.JetStream.KeyValue(ctx, bucket)
	if err != nil {
		return nil, err
	}
	if js.wrap != nil {
		b = js.wrap(b)
	}
	faulty := &natstest.FaultyKV{KeyValue: b}
	js.once.Do(func() { js.opened = faulty })
	return faulty, nil
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
func leaseOf(d time.Duration) func(*callstore.Config) {
	return func(c *callstore.Config) { c.Plan.Lease = d }
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

// booksAtLast repeats a call while NATS is too busy to report the outcome of the call before.
func (r *replica) booksAtLast(key []byte) (text string, err error) {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		if text, err = r.books(key); !asterisque.Repeatable(err) {
			break
		}
	}
	return text, err
}

// nameOf returns the name of the record of a call, for a caller without an identity.
func nameOf(key []byte) string {
	name := sha256.Sum256(append(make([]byte, 8), key...)) // the length of the identity is 0
	return hex.EncodeToString(name[:])
}

// state returns the state of a call's record, or "" if there is none.
func (r *replica) state(key []byte) string {
	e, err := r.records.Read(context.Background(), nameOf(key))
	if err != nil || !e.Exists {
		return ""
	}
	head, _, _ := bytes.Cut(e.Value, []byte{'\n'})
	var rec struct {
		State string `json:"state"`
	}
	if json.Unmarshal(head, &rec) != nil {
		return ""
	}
	return rec.State
}

// watches returns the number of watches of the bucket, or -1 if it is unknown.
func (r *replica) watches() int {
	s, err := r.js.Stream(context.Background(), r.records.Stream())
	if err != nil {
		return -1
	}
	return s.CachedInfo().State.Consumers
}

// awaitWatches waits until n repetitions wait, at all replicas: each has a watch.
func (r *replica) awaitWatches(n int) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.watches() == n }, bookingTime, time.Millisecond)
}

// awaitIdle waits until the replica runs no call, and no repetition waits there.
func (r *replica) awaitIdle() {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.Running() == 0 }, bookingTime, time.Millisecond)
}

// revision returns the revision of a call's record.
func (r *replica) revision(key []byte) uint64 {
	e, err := r.records.Read(context.Background(), nameOf(key))
	if err != nil {
		return 0
	}
	return e.Revision
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
