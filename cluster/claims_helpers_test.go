package cluster

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/test/natstest"
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
	*claims
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
	m.claims, err = newClaims(context.Background(), nc, m.kv, claimOwner{"", node, nats.NewInbox()}, "hints", s.ttl, slog.New(slog.DiscardHandler))
	require.NoError(s.t, err)
	m.now = m.clock.now
	s.t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // no wait for the releases
		m.close(ctx)
	})
	require.NoError(s.t, natstest.Flush(nc), "hints arrive from now on")
	return m
}

// has claims a key that is free.
func (m *claimant) has(t testing.TB, key string) *Claim {
	t.Helper()
	c, err := m.claim(t.Context(), key)
	require.NoError(t, err)
	return c
}

// takes takes a key over.
func (m *claimant) takes(t testing.TB, key string) *Claim {
	t.Helper()
	c, err := m.takeOver(t.Context(), key)
	require.NoError(t, err)
	return c
}

// setClock follows the real clock until it is set forward.
type setClock struct{ ahead atomic.Int64 }

func (c *setClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *setClock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// requireLost waits until a claim is lost, and returns the error.
func requireLost(t testing.TB, c *Claim) (lost *LostError) {
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
