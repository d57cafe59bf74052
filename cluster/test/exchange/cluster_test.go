package exchange_test

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/exchange/agent"
	"github.com/asterisque-go/asterisque/internal/test/testtls"
)

// natsServer starts a NATS server, which ends with the test.
func natsServer(t testing.TB) *broker.Broker {
	t.Helper()
	b, err := broker.Start(broker.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	return b
}

// inCluster joins a node to the cluster of b, until the test ends.
func inCluster(t testing.TB, b *broker.Broker, cfg cluster.Config) *cluster.Cluster {
	t.Helper()
	cfg.NATS, cfg.Options = b.URL(), []nats.Option{nats.ReconnectWait(20 * time.Millisecond)}
	c, err := cluster.Join(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// bridge starts an exchange that is connected to the cluster of b.
func bridge(t testing.TB, b *broker.Broker, cfg exchange.Config) (*exchange.Exchange, string) {
	t.Helper()
	cfg.Cluster = inCluster(t, b, cluster.Config{})
	return started(t, cfg)
}

func TestCluster_BothDirections(t *testing.T) {
	t.Parallel()
	b := natsServer(t)
	x, url := bridge(t, b, exchange.Config{Policy: everybody})
	a := joined(t, url, "plc", "a")
	c := inCluster(t, b, cluster.Config{Name: "orders", ID: "c", Service: service("c", nil)})
	toPLC, err := c.Caller(t.Context(), "plc")
	require.NoError(t, err)
	defer toPLC.Close()
	require.Equal(t, "a", ask(t, toPLC))
	got, err := back.Call(soon(t), toPLC, struct{}{})
	require.NoError(t, err)
	require.Equal(t, "a called by c", got)
	require.Equal(t, "c", ask(t, callerOf(t, a, "orders")))
	require.NoError(t, a.Close())
	require.Eventually(t, func() bool { return x.Stats().Sessions == 0 }, enough, time.Millisecond)
	require.Eventually(t, func() bool {
		members, err := c.Members(soon(t), "plc")
		return err == nil && len(members) == 0
	}, enough, time.Millisecond)
}

func TestCluster_TwoExchanges(t *testing.T) {
	t.Parallel()
	b := natsServer(t)
	_, first := bridge(t, b, exchange.Config{Policy: everybody})
	_, second := bridge(t, b, exchange.Config{Policy: everybody})
	a, c := joined(t, first, "shop", "a"), joined(t, second, "orders", "c")
	require.Equal(t, "c", ask(t, callerOf(t, a, "orders")))
	require.Equal(t, "a", ask(t, callerOf(t, c, "shop")))
	members, err := a.Members(soon(t), "orders")
	require.NoError(t, err)
	require.Len(t, members, 1)
}

func TestCluster_NodeMoves(t *testing.T) {
	t.Parallel()
	b := natsServer(t)
	x, first := bridge(t, b, exchange.Config{Policy: everybody})
	_, second := bridge(t, b, exchange.Config{Policy: everybody})
	a := join(t, agent.Config{Exchange: []string{first, second}, Name: "orders", ID: "a"})
	p := callerOf(t, joined(t, second, "", "caller"), "orders")
	require.Equal(t, "a", ask(t, p))
	require.NoError(t, x.Close())
	require.Eventually(t, func() bool {
		id, err := whoami.Call(soon(t), p, struct{}{})
		return err == nil && id == "a" // a call that was sent may have run, and is not retried
	}, enough, time.Millisecond)
	require.NoError(t, a.Err())
}

func TestCluster_ForbiddenIsHidden(t *testing.T) {
	t.Parallel()
	b := natsServer(t)
	x, url := bridge(t, b, exchange.Config{})
	a := joined(t, url, "plc", "a")
	require.Equal(t, 1, x.Stats().Nodes)
	c := inCluster(t, b, cluster.Config{Name: "orders", ID: "c", Service: service("c", nil)})
	members, err := c.Members(soon(t), "plc")
	require.NoError(t, err)
	require.Empty(t, members)
	seen, err := a.Members(soon(t), "orders")
	require.NoError(t, err)
	require.Empty(t, seen)
}

func TestCluster_NameOfCluster(t *testing.T) {
	t.Parallel()
	b := natsServer(t)
	_, url := bridge(t, b, exchange.Config{Policy: everybody})
	inCluster(t, b, cluster.Config{Name: "orders", ID: "c", Service: service("c", nil)})
	_, err := agent.Join(soon(t), agent.Config{Exchange: []string{url}, Name: "orders", ID: "a"})
	require.ErrorIs(t, err, agent.ErrNameTaken)
}

func TestCluster_Certificates(t *testing.T) {
	t.Parallel()
	b, ca := natsServer(t), testtls.NewAuthority(t)
	proving := func(names ...string) *tls.Config {
		cfg := &tls.Config{RootCAs: ca.Pool(), ClientCAs: ca.Pool(), ClientAuth: tls.RequireAndVerifyClientCert}
		for _, n := range names {
			cfg.Certificates = append(cfg.Certificates, ca.Issue(n, time.Hour))
		}
		return cfg
	}
	hub := inCluster(t, b, cluster.Config{TLS: proving("plc")}) // it does TLS for its nodes
	_, url := startedAt(t, exchange.Config{
		Cluster: hub, Policy: []exchange.Rule{{From: "shop", To: "plc"}}, Options: secure(proving("exchange")),
	}, "tls://127.0.0.1:0", wireTLS(proving("exchange")))
	join(t, agent.Config{Exchange: []string{url}, Name: "plc", ID: "a", TLS: proving("plc")})
	for name, want := range map[string]bool{"shop": true, "rogue": false} {
		c := inCluster(t, b, cluster.Config{Name: name, ID: name, TLS: proving(name), Service: service(name, nil)})
		p, err := c.Caller(t.Context(), "plc")
		require.NoError(t, err)
		if want {
			require.Equal(t, "a", ask(t, p))
		} else {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second/2) // there is no answer
			_, err := whoami.Call(ctx, p, struct{}{})
			require.Error(t, err)
			cancel()
		}
		require.NoError(t, p.Close())
	}
}
