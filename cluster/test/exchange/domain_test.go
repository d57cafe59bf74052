package exchange_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/wire"
)

// sites starts two NATS servers with a JetStream domain each, connected as leaf nodes.
func sites(t *testing.T) (hub, leaf *broker.Broker) {
	t.Helper()
	hub = site(t, "hub", func(o *server.Options) {
		o.LeafNode.Host, o.LeafNode.Port = "127.0.0.1", server.RANDOM_PORT
	})
	leaf = leafOf(t, fmt.Sprintf("127.0.0.1:%d", leafPort(t, hub)))
	require.Eventually(t, func() bool { return leaf.Server().NumLeafNodes() == 1 && hub.Server().NumLeafNodes() == 1 }, enough, time.Millisecond)
	return hub, leaf
}

// leafOf starts a server that joins another one as a leaf node.
func leafOf(t *testing.T, at string) *broker.Broker {
	t.Helper()
	return site(t, "leaf", func(o *server.Options) {
		o.LeafNode.Remotes = []*server.RemoteLeafOpts{{URLs: []*url.URL{{Scheme: "nats-leaf", Host: at}}}}
		o.LeafNode.ReconnectInterval = 50 * time.Millisecond
	})
}

func site(t *testing.T, domain string, more func(o *server.Options)) *broker.Broker {
	t.Helper()
	b, err := broker.Start(broker.Config{Name: domain, Change: func(o *server.Options) {
		o.JetStreamDomain = domain
		more(o)
	}})
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	return b
}

// leafPort returns the leaf node address of a server.
func leafPort(t *testing.T, b *broker.Broker) int {
	t.Helper()
	v, err := b.Server().Varz(nil)
	require.NoError(t, err)
	return v.LeafNode.Port
}

func TestDomain_NodesReachEachOther(t *testing.T) {
	t.Parallel()
	hub, leaf := sites(t)
	_, first := bridge(t, hub, exchange.Config{Policy: everybody})
	_, second := bridge(t, leaf, exchange.Config{Policy: everybody})
	a, c := joined(t, first, "shop", "a"), joined(t, second, "orders", "c")
	require.Equal(t, "c", ask(t, callerOf(t, a, "orders")))
	require.Equal(t, "a", ask(t, callerOf(t, c, "shop")))
	inCluster(t, leaf, cluster.Config{Name: "stock", ID: "s", Service: service("s", nil)})
	p := callerOf(t, a, "stock")
	require.Equal(t, "s", ask(t, p), "one of the other cluster itself")
	require.NoError(t, c.Close())
	seen := callerOf(t, a, "orders")
	require.Eventually(t, func() bool { return len(seen.Servers()) == 0 || !seen.Servers()[0].Ready }, enough, time.Millisecond)
}

func TestDomain_SameID(t *testing.T) {
	t.Parallel()
	hub, leaf := sites(t)
	x, _ := bridge(t, hub, exchange.Config{ID: "plant"})
	for domain, b := range map[string]*broker.Broker{"hub": hub, "leaf": leaf} {
		_, err := exchange.New(exchange.Config{ID: "plant", Cluster: inCluster(t, b, cluster.Config{}), Logger: silent})
		var claimed *exchange.ClaimedError
		require.ErrorAs(t, err, &claimed)
		require.Equal(t, exchange.ClaimedError{ID: "plant", Domain: domain, Other: "hub"}, *claimed)
	}
	require.NoError(t, x.Close())
	bridge(t, leaf, exchange.Config{ID: "plant"})
}

// Two exchanges with one id, whose domains were not connected when they started, notice each other.
func TestDomain_SameIDAfterJoin(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{Change: func(o *server.Options) { o.JetStreamDomain = "hub" }})
		in, err := cluster.Join(t.Context(), cluster.Config{NATS: b.URL(), InMemory: true, Options: natstest.Reaching(b)})
		require.NoError(t, err)
		t.Cleanup(func() { in.Close() })
		x, _ := startedAt(t, exchange.Config{ID: "plant", Cluster: in}, "mem://plant", wire.Options{})
		fakeclock.Sleep(time.Minute)
		require.Nil(t, x.Stats().Claimed)

		other := natstest.Connect(t, b) // carries messages of the other domain from now on
		sub, err := other.Subscribe("asterisque.exchange.main.id.plant", func(m *nats.Msg) {
			m.Respond([]byte(`{"instance":"another","domain":"leaf"}`))
		})
		require.NoError(t, err)
		require.NoError(t, natstest.Flush(other))
		fakeclock.Sleep(time.Minute)
		require.Equal(t, &exchange.ClaimedError{ID: "plant", Domain: "hub", Other: "leaf"}, x.Stats().Claimed)

		require.NoError(t, sub.Unsubscribe())
		require.NoError(t, natstest.Flush(other))
		fakeclock.Sleep(time.Minute)
		require.Nil(t, x.Stats().Claimed)
	})
}
