package lease

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/wire"
)

// longTTL is longer than every test, so that no renewal and no expiry happens by itself.
const longTTL = 5 * time.Minute

// claimTick is the polling interval of tests.
const claimTick = 5 * time.Millisecond

// claimTestTime is the time limit for conditions, for slow machines too.
const claimTestTime = 2 * time.Minute

// claimSite is a broker with a bucket of claims.
type claimSite struct {
	t       testing.TB
	b       *broker.Broker
	ttl     time.Duration
	storage jetstream.StorageType // of the next bucket
}

func newClaimSite(t testing.TB, ttl time.Duration) *claimSite {
	t.Helper()
	b := natstest.StartServer(t, broker.Config{})
	// in memory: the files of a bucket may stay for a while after its deletion
	s := &claimSite{t: t, b: b, ttl: ttl, storage: jetstream.MemoryStorage}
	s.makeBucket()
	return s
}

// connect returns a connection until the test ends, which reconnects quickly.
func (s *claimSite) connect() *nats.Conn {
	s.t.Helper()
	return natstest.Connect(s.t, s.b, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
}

func (s *claimSite) jetStream(nc *nats.Conn) jetstream.JetStream {
	s.t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(s.t, err)
	return js
}

func (s *claimSite) makeBucket() {
	s.t.Helper()
	time.Sleep(time.Millisecond) //nolint:forbidigo // the next bucket needs another time
	nc := s.connect()
	defer nc.Close()
	_, err := s.jetStream(nc).CreateKeyValue(s.t.Context(), jetstream.KeyValueConfig{Bucket: "claims", TTL: s.ttl, Storage: s.storage})
	require.NoError(s.t, err)
}

func (s *claimSite) deleteBucket() {
	s.t.Helper()
	nc := s.connect()
	defer nc.Close()
	require.NoError(s.t, s.jetStream(nc).DeleteKeyValue(s.t.Context(), "claims"))
}

func (s *claimSite) purgeBucket() {
	s.t.Helper()
	nc := s.connect()
	defer nc.Close()
	stream, err := s.jetStream(nc).Stream(s.t.Context(), "KV_claims")
	require.NoError(s.t, err)
	require.NoError(s.t, stream.Purge(s.t.Context()))
}

// claimant is a node with its claims, and with faults for tests.
type claimant struct {
	*Claims
	nc    *nats.Conn
	kv    *natstest.FaultyKV
	clock *setClock
	ran   atomic.Int64 // calls that its handlers have run
}

// join returns the claims of a node, until the test ends.
func (s *claimSite) join(node string) *claimant {
	s.t.Helper()
	nc := s.connect()
	bucket, err := s.jetStream(nc).KeyValue(s.t.Context(), "claims")
	require.NoError(s.t, err)
	m := &claimant{nc: nc, kv: &natstest.FaultyKV{KeyValue: bucket}, clock: new(setClock)}
	m.Claims, err = Open(context.Background(), Config{
		NATS: nc, Bucket: m.kv, TTL: s.ttl, Hints: "hints", Node: node, Instance: nats.NewInbox(),
		Held: func(h Held) error { return &heldErr{h} }, Lost: func(l Lost) error { return &lostErr{l} },
		Logger: slog.New(slog.DiscardHandler), Now: m.clock.now,
	})
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // no wait for the releases
		m.Close(ctx)
	})
	require.NoError(s.t, natstest.Flush(nc), "hints arrive from now on")
	return m
}

// has claims a key that is free.
func (m *claimant) has(t testing.TB, key string) *Claim {
	t.Helper()
	c, err := m.Claim(t.Context(), key)
	require.NoError(t, err)
	return c
}

// takes takes a key over.
func (m *claimant) takes(t testing.TB, key string) *Claim {
	t.Helper()
	c, err := m.TakeOver(t.Context(), key)
	require.NoError(t, err)
	return c
}

// heldErr is the error of a held key, as an application sees it.
type heldErr struct{ Held }

func (e *heldErr) Error() string { return e.Holder + " holds it" }

// lostErr is the error of a lost claim, as an application sees it.
type lostErr struct{ Lost }

func (e *lostErr) Error() string { return fmt.Sprint("it is lost: ", e.Cause) }

func (e *lostErr) Unwrap() []error {
	if e.Cause == nil {
		return []error{ErrLost}
	}
	return []error{ErrLost, e.Cause}
}

// setClock follows the real clock until it is set forward.
type setClock struct{ ahead atomic.Int64 }

func (c *setClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *setClock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// requireLost waits until a claim is lost, and returns the error.
func requireLost(t testing.TB, c *Claim) (lost *lostErr) {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(claimTestTime):
		t.Fatal("the claim is not lost")
	}
	require.ErrorIs(t, c.Err(), ErrLost)
	require.ErrorAs(t, c.Err(), &lost)
	return lost
}

// whoami answers with the name of its node. With "wait" it waits until its context ends.
var whoami = asterisque.Func[string, string](1, "whoami")

// ticks sends nothing, until its context ends.
var ticks = asterisque.Stream[string, string, string, string](2, "ticks")

// fenceService returns the service of a member. ran counts its calls.
func (m *claimant) fenceService() *asterisque.Service {
	svc := asterisque.NewService()
	whoami.Handle(svc, func(ctx context.Context, what string) (string, error) {
		m.ran.Add(1)
		if what == "wait" {
			<-ctx.Done()
			return "", ctx.Err()
		}
		return m.self.node, nil
	})
	ticks.Handle(svc, func(ctx context.Context, _ string, p *asterisque.Pipe[string, string]) (string, error) {
		m.ran.Add(1)
		_, err := p.Recv(ctx)
		return m.self.node, err
	})
	return svc
}

// callable returns a session to a node with the fence of m.
func (m *claimant) callable(t testing.TB) *asterisque.Session {
	t.Helper()
	return fenceSessionTo(t, asterisque.WithService(m.fenceService()), asterisque.WithInboundInterceptors(m.fence().Intercept))
}

// fence returns a fence of m.
func (m *claimant) fence() *Fence {
	f := NewFence()
	f.SetClaims(m.Claims)
	return f
}

// fenceSessionTo returns a session to a node with these options, over a Wire within this program.
func fenceSessionTo(t testing.TB, opts ...asterisque.Option) *asterisque.Session {
	t.Helper()
	here, there := asterisque.NewNode(), asterisque.NewNode(opts...)
	t.Cleanup(func() { here.Close(); there.Close() })
	a, b := wire.Pipe()
	accepted := make(chan error, 1)
	go func() { // ends with the handshake
		_, err := there.Accept(context.Background(), b)
		accepted <- err
	}()
	s, err := here.Attach(context.Background(), a)
	require.NoError(t, err)
	require.NoError(t, <-accepted)
	return s
}

// withMark returns a context that adds a claim mark to calls.
func withMark(ctx context.Context, name, value string) context.Context {
	return asterisque.ContextWithMetadata(ctx, asterisque.Metadata{name: value})
}

// requireNotRun requires that a call that failed with err was rejected, or not sent.
func requireNotRun(t testing.TB, m *claimant, ran int64, err error, is error) {
	t.Helper()
	require.ErrorIs(t, err, is)
	require.True(t, asterisque.Repeatable(err), err)
	require.Equal(t, ran, m.ran.Load())
}
