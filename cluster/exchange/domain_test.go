package exchange_test

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/exchange/agent"
	"github.com/asterisque-go/asterisque/tunnel"
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

func TestDomain_SameIDAfterJoin(t *testing.T) {
	t.Parallel()
	hub := site(t, "hub", func(o *server.Options) {
		o.LeafNode.Host, o.LeafNode.Port = "127.0.0.1", server.RANDOM_PORT
	})
	var joined atomic.Bool
	leaf := leafOf(t, gate(t, &joined, fmt.Sprintf("127.0.0.1:%d", leafPort(t, hub))))
	x, _ := bridge(t, hub, exchange.Config{ID: "plant"})
	y, _ := bridge(t, leaf, exchange.Config{ID: "plant"})
	x.LookForOther()
	require.Nil(t, x.Stats().Claimed)
	joined.Store(true)
	require.Eventually(t, func() bool {
		x.LookForOther()
		y.LookForOther()
		return x.Stats().Claimed != nil && y.Stats().Claimed != nil
	}, enough, time.Millisecond)
	require.Equal(t, exchange.ClaimedError{ID: "plant", Domain: "hub", Other: "leaf"}, *x.Stats().Claimed)
	require.NoError(t, y.Close())
	require.Eventually(t, func() bool { x.LookForOther(); return x.Stats().Claimed == nil }, enough, time.Millisecond)
}

// replicas joins nodes that relay the peers of each other's sessions.
func replicas(t *testing.T, url string, ids ...string) (asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	nodes, records := make(map[string]*agent.Agent), asterisque.NewRepository()
	for _, id := range ids {
		nodes[id] = joined(t, url, "orders", id, asterisque.WithResume(asterisque.Resume{
			For: time.Minute, Records: records,
			Elsewhere: func(_ context.Context, r asterisque.SessionRecord, _ asterisque.Peer) (wire.Wire, error) {
				asked.Add(1)
				near, far := wire.Pipe()
				other := nodes[r.Node].Node()
				go other.AcceptRelayed(context.Background(), far) // ends with the handshake
				return near, nil
			},
		}))
	}
	return asked
}

func TestResume_OtherNode(t *testing.T) {
	t.Parallel()
	_, url := started(t, exchange.Config{Policy: everybody})
	asked := replicas(t, url, "b", "c")
	s := hostile(t, url, never)
	require.NoError(t, register(t, s, "", "i"))
	node := asterisque.NewNode(resume, asterisque.WithLogger(silent))
	t.Cleanup(func() { node.Close() })
	wires, to := make(chan wire.Wire, 8), "b"
	conn, err := node.Connect(t.Context(), "", asterisque.ReconnectConfig{Dial: func(context.Context) (wire.Wire, error) {
		call, err := dial(t, s, "orders", to)
		to = "c" // from now on
		w := wire.FromConn(tunnel.NewConn(call.Untyped(), s))
		wires <- w
		return w, err
	}})
	require.NoError(t, err)
	require.Equal(t, "b", ask(t, conn))
	(<-wires).Close()
	w := <-wires
	for range 10 {
		require.Equal(t, "b", ask(t, conn))
	}
	require.EqualValues(t, 1, asked.Load())
	require.Empty(t, wires, "it has kept its wire")
	w.Close()
}
