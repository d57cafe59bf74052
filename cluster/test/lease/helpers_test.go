package lease_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/lease"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/wire"
)

// longTTL is longer than every test outside of a bubble, so that no renewal and no expiry happens
// there. In a bubble, a renewal happens when a test waits for it.
const longTTL = 5 * time.Minute

// claimTick is the polling interval of tests.
const claimTick = 5 * time.Millisecond

// claimTestTime is the time limit for conditions, for slow machines too, and longer than the time
// between two renewals with longTTL.
const claimTestTime = 2 * time.Minute

// Metadata keys of calls, as they are sent: the caller is the holder of a key, or the call is for
// the holder.
const (
	asHolder = "asterisque.as"
	toHolder = "asterisque.to"
)

// claimMark is the value of such metadata.
func claimMark(key string, epoch uint64) string { return fmt.Sprint(epoch, " ", key) }

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

// lease is the duration of a claim from the start of its last renewal.
func (s *claimSite) lease() time.Duration { return s.ttl - s.ttl/5 }

// retryDelay is the delay before the retry of a failed renewal.
func (s *claimSite) retryDelay() time.Duration { return s.ttl / 15 }

// connect returns a connection until the test ends, which reconnects quickly.
func (s *claimSite) connect() *nats.Conn {
	s.t.Helper()
	return natstest.Connect(s.t, s.b, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
}

func jetStreamOf(t testing.TB, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return js
}

func (s *claimSite) makeBucket() {
	s.t.Helper()
	nc := s.connect()
	defer nc.Close()
	_, err := jetStreamOf(s.t, nc).CreateKeyValue(s.t.Context(), jetstream.KeyValueConfig{Bucket: "claims", TTL: s.ttl, Storage: s.storage})
	require.NoError(s.t, err)
}

func (s *claimSite) deleteBucket() {
	s.t.Helper()
	nc := s.connect()
	defer nc.Close()
	require.NoError(s.t, jetStreamOf(s.t, nc).DeleteKeyValue(s.t.Context(), "claims"))
	fakeclock.Sleep(time.Millisecond) // the next bucket needs another time
}

func (s *claimSite) purgeBucket() {
	s.t.Helper()
	nc := s.connect()
	defer nc.Close()
	stream, err := jetStreamOf(s.t, nc).Stream(s.t.Context(), "KV_claims")
	require.NoError(s.t, err)
	require.NoError(s.t, stream.Purge(s.t.Context()))
}

// readSubject is the subject of requests for entries.
const readSubject = "$JS.API.STREAM.MSG.GET.KV_claims"

// rawEntry returns the answer of NATS to a request for the entry of a key.
func (s *claimSite) rawEntry(key string) []byte {
	s.t.Helper()
	answer, err := natstest.Request(s.connect(), readSubject, fmt.Appendf(nil, `{"last_by_subj":"$KV.claims.%s"}`, key), natstest.Timeout)
	require.NoError(s.t, err)
	return answer.Data
}

// divertReads gives the requests for entries by all clients to answer instead of JetStream, until
// restore is called.
func (s *claimSite) divertReads(answer nats.MsgHandler) (restore func()) {
	s.t.Helper()
	const diverted = "diverted"
	nc, account := s.connect(), s.b.Server().GlobalAccount()
	_, err := nc.Subscribe(diverted, answer)
	require.NoError(s.t, err)
	require.NoError(s.t, natstest.Flush(nc))
	require.NoError(s.t, account.AddMapping(readSubject, diverted))
	return func() { account.RemoveMapping(readSubject) }
}

// withholdReads leaves the requests for entries by all clients without an answer until restore is
// called, and counts them.
func (s *claimSite) withholdReads() (withheld *atomic.Int64, restore func()) {
	s.t.Helper()
	withheld = new(atomic.Int64)
	return withheld, s.divertReads(func(*nats.Msg) { withheld.Add(1) })
}

// claimant is a node with its claims, and with faults for tests.
type claimant struct {
	*lease.Claims
	node  string
	nc    *nats.Conn
	kv    *natstest.FaultyKV
	clock *setClock
	ran   atomic.Int64 // calls that its handlers have run
}

// withoutHints makes a node notify no other node of a takeover.
func withoutHints(cfg *lease.Config) { cfg.Hints = "nowhere" }

// join returns the claims of a node, until the test ends.
func (s *claimSite) join(node string, opts ...func(*lease.Config)) *claimant {
	s.t.Helper()
	return open(s.t, s.connect(), s.ttl, node, opts...)
}

// open returns the claims of a node with a connection, until the test ends.
func open(t testing.TB, nc *nats.Conn, ttl time.Duration, node string, opts ...func(*lease.Config)) *claimant {
	t.Helper()
	bucket, err := jetStreamOf(t, nc).KeyValue(t.Context(), "claims")
	require.NoError(t, err)
	m := &claimant{node: node, nc: nc, kv: &natstest.FaultyKV{KeyValue: bucket}, clock: new(setClock)}
	cfg := lease.Config{
		NATS: nc, Bucket: m.kv, TTL: ttl, Hints: "hints", Node: node, Instance: nats.NewInbox(),
		Held: func(h lease.Held) error { return &heldErr{h} }, Lost: func(l lease.Lost) error { return &lostErr{l} },
		Logger: slog.New(slog.DiscardHandler), Now: m.clock.now,
	}
	for _, opt := range opts {
		opt(&cfg)
	}
	m.Claims, err = lease.Open(context.Background(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // no wait for the releases
		m.Close(ctx)
	})
	require.NoError(t, natstest.Flush(nc), "hints arrive from now on")
	return m
}

// has claims a key that is free.
func (m *claimant) has(t testing.TB, key string) *lease.Claim {
	t.Helper()
	c, err := m.Claim(t.Context(), key)
	require.NoError(t, err)
	return c
}

// takes takes a key over.
func (m *claimant) takes(t testing.TB, key string) *lease.Claim {
	t.Helper()
	c, err := m.TakeOver(t.Context(), key)
	require.NoError(t, err)
	return c
}

// revision returns the revision of the entry of a key.
func (m *claimant) revision(t testing.TB, key string) uint64 {
	t.Helper()
	e, err := m.kv.Get(t.Context(), key)
	require.NoError(t, err)
	return e.Revision()
}

// writes calls each function before one of the next writes of m, such as a renewal. It returns the
// times of these writes, after m has processed their outcomes.
func (m *claimant) writes(t testing.TB, before ...func()) (at []time.Time) {
	t.Helper()
	done := make(chan struct{})
	var await func(n int)
	await = func(n int) {
		m.kv.Once(func() {
			at = append(at, time.Now())
			before[n]()
			if n++; n < len(before) {
				await(n)
				return
			}
			close(done)
		})
	}
	await(0)
	select {
	case <-done:
	case <-time.After(time.Duration(len(before)) * claimTestTime):
		t.Fatal("nothing is written")
	}
	synctest.Wait()
	return at
}

// renews waits until m has renewed, or has tried to renew, a claim. It returns the time of the
// write.
func (m *claimant) renews(t testing.TB) time.Time {
	t.Helper()
	return m.writes(t, func() {})[0]
}

// heldErr is the error of a held key, as an application sees it.
type heldErr struct{ lease.Held }

func (e *heldErr) Error() string { return e.Holder + " holds it" }

// lostErr is the error of a lost claim, as an application sees it.
type lostErr struct{ lease.Lost }

func (e *lostErr) Error() string { return fmt.Sprint("it is lost: ", e.Cause) }

func (e *lostErr) Unwrap() []error {
	if e.Cause == nil {
		return []error{lease.ErrLost}
	}
	return []error{lease.ErrLost, e.Cause}
}

// setClock follows the real clock until it is set forward.
type setClock struct {
	ahead    atomic.Int64
	wallOnly atomic.Bool // no monotonic part, as after the suspension of a machine
}

func (c *setClock) now() time.Time {
	now := time.Now()
	if c.wallOnly.Load() {
		now = now.Round(0)
	}
	return now.Add(time.Duration(c.ahead.Load()))
}

func (c *setClock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// Causes of a lost claim.
const (
	stoodStill = "its lease ran out while this process, or its machine, stood still"
	entryGone  = "its entry in NATS is gone: the bucket was deleted or purged, or the entry ran out"
)

// requireLost waits until a claim is lost, and returns the error.
func requireLost(t testing.TB, c *lease.Claim) (lost *lostErr) {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(claimTestTime):
		t.Fatal("the claim is not lost")
	}
	require.ErrorIs(t, c.Err(), lease.ErrLost)
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
		return m.node, nil
	})
	ticks.Handle(svc, func(ctx context.Context, _ string, p *asterisque.Pipe[string, string]) (string, error) {
		m.ran.Add(1)
		_, err := p.Recv(ctx)
		return m.node, err
	})
	return svc
}

// callable returns a session to a node with the fence of m.
func (m *claimant) callable(t testing.TB) *asterisque.Session {
	t.Helper()
	return fenceSessionTo(t, asterisque.WithService(m.fenceService()), asterisque.WithInboundInterceptors(m.fence().Intercept))
}

// fence returns a fence of m.
func (m *claimant) fence() *lease.Fence {
	f := lease.NewFence()
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

// requireLostBy requires that a claim is known to be lost by now, with that cause.
func requireLostBy(t testing.TB, c *lease.Claim, cause string) {
	t.Helper()
	var lost *lostErr
	require.ErrorIs(t, c.Err(), lease.ErrLost)
	require.ErrorAs(t, c.Err(), &lost)
	require.EqualError(t, lost.Cause, cause)
}

// requireNotRun requires that a call that failed with err was rejected, or not sent.
func requireNotRun(t testing.TB, m *claimant, ran int64, err error, is error) {
	t.Helper()
	require.ErrorIs(t, err, is)
	require.True(t, asterisque.Repeatable(err), err)
	require.Equal(t, ran, m.ran.Load())
}
