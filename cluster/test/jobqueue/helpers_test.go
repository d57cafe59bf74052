package jobqueue_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/callstore"
	"github.com/asterisque-go/asterisque/cluster/internal/jobqueue"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/priority"
)

// bookings are nodes of orders that take posted calls, and nodes that post them.
type bookings struct {
	bookingtest.Service

	t testing.TB
	b *broker.Broker // nil in a process of its own
}

func newBookings(t testing.TB) *bookings {
	return &bookings{t: t, b: natstest.StartServer(t, broker.Config{})}
}

// settings are those of one node.
type settings struct {
	Identity string
	URLs     string // of the NATS servers; empty: that of the bookings
	Options  []nats.Option
	Replicas int
	InFiles  bool // streams survive their server
	Queue    jobqueue.Plan
	Worker   jobqueue.WorkerConfig
	Durable  callstore.Plan

	// JetStream wraps the JetStream of the queues; nil: it has no wrapper.
	JetStream func(jetstream.JetStream) jetstream.JetStream
}

// inFiles makes streams and records survive their server.
func inFiles(c *settings) { c.InFiles = true }

// member is a node.
type member struct {
	*jobqueue.Queues
	nc    *nats.Conn
	js    jetstream.JetStream // on nc, without a wrapper
	life  context.Context
	leave context.CancelFunc

	node    *asterisque.Node // nil if it only posts, as worker and durable are
	worker  *jobqueue.Worker
	durable *callstore.Registry
}

// settings returns the settings of a node.
func (s *bookings) settings(change []func(*settings)) settings {
	c := settings{
		Identity: "orders", Replicas: 1, Queue: jobqueue.Plan{Calls: 8, Bytes: 1 << 20, Longest: time.Hour},
		Durable: callstore.Plan{
			Calls: 1 << 16, Bytes: 1 << 20, Share: 1, Lease: 15 * time.Second, Remember: time.Hour,
		},
	}
	for _, by := range change {
		by(&c)
	}
	return c
}

// connected returns a node that only posts.
func (s *bookings) connected(c settings, poster jobqueue.Poster) *member {
	s.t.Helper()
	url, opts := c.URLs, c.Options
	if url == "" {
		url, opts = s.b.URL(), append(opts, natstest.Reaching(s.b)...)
	}
	again := new(wait.Notice)
	nc, err := nats.Connect(url, append(opts, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), nats.ReconnectHandler(func(*nats.Conn) { again.Signal() }))...)
	require.NoError(s.t, err)
	js, err := jetstream.New(nc)
	require.NoError(s.t, err)
	life, leave := context.WithCancel(context.Background())
	cfg := jobqueue.Config{
		Prefix: "main", Cluster: "asterisque", Replicas: c.Replicas, Plan: c.Queue, Poster: poster,
		Exported: func(err error) error { return err },
	}
	if !c.InFiles && c.URLs == "" && natstest.Forgets(s.b) {
		cfg.Storage = jetstream.MemoryStorage
	}
	links := jobqueue.Links{NATS: nc, JetStream: js, Reconnected: again, Life: life, Logger: slog.New(slog.DiscardHandler)}
	if c.JetStream != nil {
		links.JetStream = c.JetStream(js)
	}
	m := &member{nc: nc, js: js, life: life, leave: leave, Queues: jobqueue.New(cfg, links)}
	s.t.Cleanup(func() { m.Close() })
	return m
}

// customer returns a node that only posts.
func (s *bookings) customer(change ...func(*settings)) *member {
	s.t.Helper()
	identity := func(c *settings) { c.Identity = "customer" }
	c := s.settings(append([]func(*settings){identity}, change...))
	return s.connected(c, jobqueue.Poster{Identity: c.Identity, ID: "customer"})
}

// takes returns a node of orders that takes posted calls, from its start.
func (s *bookings) takes(id string, f bookingtest.Handler, change ...func(*settings)) *member {
	s.t.Helper()
	c := s.settings(change)
	m := s.connected(c, jobqueue.Poster{Identity: "orders", Name: "orders", ID: id})
	records := jetstream.MemoryStorage
	if c.InFiles {
		records = jetstream.FileStorage
	}
	m.durable = callstore.New(callstore.Config{
		Plan: c.Durable, Bucket: "calls_orders", Cluster: "asterisque", Replicas: c.Replicas, Storage: records, Node: id, Instance: rand.Text(),
		PostedBy: func(peer asterisque.Peer, md asterisque.Metadata) (string, bool) {
			by, ok := jobqueue.PosterAt(peer, md)
			return by.Identity, ok
		},
		Closed: errors.New("the node has left"),
	})
	m.node = asterisque.NewNode(s.With(f), asterisque.WithID(id), asterisque.WithInboundInterceptors(m.durable.Intercept))
	ctx, cancel := context.WithTimeout(s.t.Context(), natstest.Timeout)
	defer cancel()
	require.NoError(s.t, m.durable.Open(ctx, callstore.Links{NATS: m.nc, JetStream: m.js, Life: m.life, Logger: slog.New(slog.DiscardHandler)}))
	c.Worker.Node, c.Worker.Name, c.Worker.ID = m.node, "orders", id
	c.Worker.Remember, c.Worker.Idempotent = c.Durable.Remember, c.Durable.Idempotent
	var err error
	m.worker, err = m.Work(ctx, c.Worker)
	require.NoError(s.t, err)
	return m
}

// Close ends the node like that of a cluster.
func (m *member) Close() error {
	m.leave()
	if m.node != nil {
		m.node.Close()
	}
	if m.worker != nil {
		m.worker.Close()
		m.durable.Close()
		m.worker.Wait()
	}
	m.nc.Close()
	return nil
}

// Shutdown ends the node once its calls have ended.
func (m *member) Shutdown(ctx context.Context) error {
	err := m.node.Shutdown(ctx)
	m.worker.Finish(ctx)
	m.Close()
	return err
}

// newLastingBookings returns bookings with a server that can be restarted, and the configuration
// for the restart.
func newLastingBookings(t testing.TB) (*bookings, broker.Config) {
	dir := t.TempDir()
	b := natstest.StartServer(t, broker.Config{Dir: dir})
	return &bookings{t: t, b: b}, natstest.Restarted(b, dir)
}

// post posts a call of a typed function.
func post[P, R any](ctx context.Context, c *member, name string, f asterisque.Function[P, R], params P, opts ...func(*jobqueue.Job)) (string, error) {
	encoded, err := jobqueue.Codec.Append(nil, &params)
	if err != nil {
		return "", err
	}
	j := jobqueue.Job{Function: f.Number(), Params: encoded}
	for _, o := range opts {
		o(&j)
	}
	return c.Post(ctx, name, j)
}

func withDeadline(at time.Time) func(*jobqueue.Job) { return func(j *jobqueue.Job) { j.Deadline = at } }

func withUrgency(u priority.Priority) func(*jobqueue.Job) {
	return func(j *jobqueue.Job) { j.Urgency = u }
}

// posts posts a call, or fails.
func posts(t testing.TB, c *member, n int, opts ...func(*jobqueue.Job)) string {
	t.Helper()
	r, err := post(t.Context(), c, "orders", bookingtest.Book, n, opts...)
	require.NoError(t, err)
	return r
}

// resultOf waits for the outcome of a posted call of a typed function.
func resultOf[P, R any](ctx context.Context, c *member, _ asterisque.Function[P, R], receipt string) (result R, err error) {
	encoded, err := c.Result(ctx, receipt)
	if err != nil {
		return result, err
	}
	return result, jobqueue.Codec.Decode(encoded, &result)
}

// results waits for the outcome of a posted call of Book.
func results(t testing.TB, c *member, receipt string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Timeout)
	defer cancel()
	return resultOf(ctx, c, bookingtest.Book, receipt)
}

// waiting returns the number of calls that wait for orders.
func waiting(t testing.TB, c *member) uint64 {
	t.Helper()
	s, err := c.js.Stream(t.Context(), queueStream)
	require.NoError(t, err)
	return s.CachedInfo().State.Msgs
}

// soonWaiting expects that soon n calls wait for orders.
func soonWaiting(t testing.TB, c *member, n uint64, msg ...any) {
	t.Helper()
	require.Eventually(t, func() bool {
		s, err := c.js.Stream(t.Context(), queueStream)
		return err == nil && s.CachedInfo().State.Msgs == n
	}, natstest.Timeout, perLook, msg...)
}
