package exchange_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/exchange/agent"
	"github.com/asterisque-go/asterisque/pool"
)

// twoExchanges returns an exchange, and the URLs of that and another one.
func twoExchanges(t *testing.T) (first *exchange.Exchange, urls []string) {
	t.Helper()
	first, url := started(t, exchange.Config{Policy: everybody})
	_, other := started(t, exchange.Config{Policy: everybody})
	return first, []string{url, other}
}

// busy returns a Pool between two nodes at these exchanges, and a running call of it.
func busy(t *testing.T, urls []string, opts ...asterisque.Option) (p *pool.Pool, call *asterisque.StreamCall[[]byte, []byte, struct{}], b *agent.Agent) {
	t.Helper()
	a := join(t, agent.Config{Exchange: urls, Name: "shop", ID: "a"}, opts...)
	b = join(t, agent.Config{Exchange: urls, Name: "orders", ID: "b"}, opts...)
	p = callerOf(t, a, "orders")
	return p, running(t, p), b
}

// shuttingDown starts the shutdown of an exchange, and returns its error once it is complete. The
// error reports whether sessions were interrupted after 30 seconds.
func shuttingDown(t *testing.T, x *exchange.Exchange) <-chan error {
	over := make(chan error, 1)
	go func() { over <- x.Shutdown(context.Background()) }() // ends in 30 seconds at most
	require.Eventually(t, func() bool { return x.Stats().Nodes == 0 }, enough, time.Millisecond)
	return over
}

func TestShutdown_IdleSessions(t *testing.T) {
	t.Parallel()
	x, urls := twoExchanges(t)
	p, call, _ := busy(t, urls)
	call.Abort(nil)
	require.NoError(t, <-shuttingDown(t, x), "nothing is cut")
	require.Equal(t, "b", ask(t, p), "through the other one")
}

func TestShutdown_WaitsForCalls(t *testing.T) {
	t.Parallel()
	x, urls := twoExchanges(t)
	p, call, _ := busy(t, urls)
	over := shuttingDown(t, x)
	require.Equal(t, "b", ask(t, p), "through the other one, meanwhile")
	require.NoError(t, call.Untyped().Err())
	require.Empty(t, over)
	call.Abort(nil)
	require.NoError(t, <-over, "nothing is cut")
}

func TestShutdown_ResumableMove(t *testing.T) {
	t.Parallel()
	x, urls := twoExchanges(t)
	p, call, b := busy(t, urls, resume)
	session := b.Node().Sessions()[0]
	require.NoError(t, <-shuttingDown(t, x), "nothing is cut")
	require.Equal(t, "b", ask(t, p))
	require.Same(t, session, b.Node().Sessions()[0])
	require.NoError(t, call.Untyped().Err(), "it continues there")
	call.Abort(nil)
}

func TestShutdown_ClusterSessions(t *testing.T) {
	t.Parallel()
	b := natsServer(t)
	x, first := bridge(t, b, exchange.Config{Policy: everybody})
	_, second := bridge(t, b, exchange.Config{Policy: everybody})
	a := join(t, agent.Config{Exchange: []string{first, second}, Name: "plc", ID: "a"})
	c := inCluster(t, b, cluster.Config{Name: "orders", ID: "c", Service: service("c", nil)})
	to := callerOf(t, a, "orders")
	from, err := c.Caller(t.Context(), "plc")
	require.NoError(t, err)
	defer from.Close()
	out, in := running(t, to), running(t, from)
	over := shuttingDown(t, x)
	require.Equal(t, "c", ask(t, to), "through the other one, meanwhile")
	require.Equal(t, "a", ask(t, from), "the same")
	require.NoError(t, out.Untyped().Err())
	require.NoError(t, in.Untyped().Err())
	out.Abort(nil)
	in.Abort(nil)
	require.NoError(t, <-over, "nothing is cut")
}
