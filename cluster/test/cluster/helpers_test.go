package cluster_test

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/pool"
)

// ownID answers with the id of the node.
var ownID = asterisque.Func[struct{}, string](1, "ownID")

// config returns a Config of a node in the cluster of b.
func config(b *broker.Broker, name, id string) cluster.Config {
	cfg := cluster.Config{Name: name, ID: id, NATS: b.URL(), Options: append(natstest.Reaching(b), nats.ReconnectWait(20*time.Millisecond))}
	cfg.InMemory = natstest.Forgets(b)
	return cfg
}

// joined joins a node that offers ownID, until the test ends.
func joined(t testing.TB, cfg cluster.Config, opts ...asterisque.Option) *cluster.Cluster {
	t.Helper()
	svc := asterisque.NewService()
	ownID.Handle(svc, func(context.Context, struct{}) (string, error) { return cfg.ID, nil })
	hold.Handle(svc, func(ctx context.Context, _ struct{}, p *asterisque.Pipe[struct{}, struct{}]) (none struct{}, err error) {
		if err = p.Send(ctx, none); err == nil { // it runs
			_, err = p.Recv(ctx)
		}
		return none, err
	})
	start, done := context.WithTimeout(t.Context(), natstest.Timeout)
	defer done()
	c, err := cluster.Join(start, cfg, append([]asterisque.Option{asterisque.WithService(svc)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	if len(cfg.Listen) > 0 {
		learnAddress(t, c, cfg.Name)
	}
	return c
}

// listening adds an address to a Config: a TCP port, or in a bubble one in memory.
func listening(cfg cluster.Config) cluster.Config {
	cfg.Listen = []string{"tcp://127.0.0.1:0"}
	if strings.Contains(cfg.NATS, natstest.BubbleHost) {
		cfg.Listen = []string{"mem://" + strings.ToLower(rand.Text())}
	}
	return cfg
}

// callerOf returns a Pool over the nodes of a name, which ends with the test.
func callerOf(t testing.TB, c *cluster.Cluster, name string, opts ...cluster.CallerOption) *pool.Pool {
	t.Helper()
	p, err := c.Caller(t.Context(), name, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

// ask calls ownID.
func ask(t testing.TB, on asterisque.Caller) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Timeout)
	defer cancel()
	id, err := ownID.Call(ctx, on, struct{}{})
	require.NoError(t, err)
	return id
}

// answering waits until exactly these nodes answer calls on p.
func answering(t testing.TB, p *pool.Pool, ids ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		got := make(map[string]bool)
		for range 20 {
			got[ask(t, p)] = true
		}
		for _, id := range ids {
			if !got[id] {
				return false
			}
		}
		return len(got) == len(ids)
	}, natstest.Timeout, 10*time.Millisecond)
}

// vanish ends a node like a crash, without an announcement.
func vanish(c *cluster.Cluster) {
	c.Conn().Close()
	c.Close()
}

// wires returns the addresses of the sessions that a node has.
func wires(c *cluster.Cluster) (remote []string) {
	for _, s := range c.Node().Sessions() {
		remote = append(remote, s.Peer().RemoteAddr.Network())
	}
	return remote
}

// hold runs until its caller ends it.
var hold = asterisque.Stream[struct{}, struct{}, struct{}, struct{}](2, "hold")

// jetStream returns JetStream on the connection of a node.
func jetStream(t testing.TB, c *cluster.Cluster) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(c.Conn())
	require.NoError(t, err)
	return js
}

// bucket returns a bucket of the cluster, on the connection of a node.
func bucket(t testing.TB, c *cluster.Cluster, name string) jetstream.KeyValue {
	t.Helper()
	b, err := jetStream(t, c).KeyValue(t.Context(), "asterisque_main_"+name)
	require.NoError(t, err)
	return b
}

// entry returns an entry of a bucket of the cluster, on the connection of a node.
func entry(t testing.TB, c *cluster.Cluster, name, key string) (jetstream.KeyValueEntry, error) {
	t.Helper()
	b, err := jetStream(t, c).KeyValue(t.Context(), "asterisque_main_"+name)
	if err != nil {
		return nil, err
	}
	return b.Get(t.Context(), key)
}

// addresses has the first address of each node that listens.
var addresses sync.Map

// address returns the address at which a node listens.
func address(c *cluster.Cluster) string {
	at, _ := addresses.Load(c)
	return at.(string)
}

// learnAddress makes the address of a node known to address, until the test ends.
func learnAddress(t testing.TB, c *cluster.Cluster, name string) {
	t.Helper()
	members, err := c.Members(t.Context(), name)
	require.NoError(t, err)
	i := slices.IndexFunc(members, func(m cluster.Member) bool { return m.ID == c.ID() })
	require.GreaterOrEqual(t, i, 0, "the node is listed")
	addresses.Store(c, members[i].Addresses[0])
	t.Cleanup(func() { addresses.Delete(c) })
}

const (
	// lifeTime is the time without a sign of life after which a node counts as lost.
	lifeTime = 15 * time.Second

	// mostMetadata is the maximum size of a node's metadata.
	mostMetadata = 4 << 10
)
