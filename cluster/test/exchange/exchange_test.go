package exchange_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/exchange/agent"
	"github.com/asterisque-go/asterisque/wire"
)

func TestAgent_CallsBothWays(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{Policy: everybody})
	a, b := joined(t, url, "shop", "a"), joined(t, url, "orders", "b")
	require.Equal(t, "b", ask(t, callerOf(t, a, "orders")))
	require.Equal(t, "a", ask(t, callerOf(t, b, "shop")))
	got, err := back.Call(soon(t), callerOf(t, a, "orders"), struct{}{})
	require.NoError(t, err)
	require.Equal(t, "b called by a", got)
	require.Equal(t, 2, x.Stats().Nodes)
	require.Equal(t, 2, x.Stats().Names)
	require.Positive(t, x.Stats().Sessions)
}

func TestAgent_CallsAreBalanced(t *testing.T) {
	t.Parallel()
	_, url := started(t, exchange.Config{Policy: everybody})
	a := joined(t, url, "", "caller")
	p := callerOf(t, a, "orders")
	for i := range 3 {
		joined(t, url, "orders", fmt.Sprint("b", i))
	}
	got := make(map[string]bool)
	require.Eventually(t, func() bool {
		got[ask(t, p)] = true
		return len(got) == 3
	}, enough, time.Millisecond)
	one, err := a.At(t.Context(), "orders", "b1")
	require.NoError(t, err)
	require.Equal(t, "b1", ask(t, one))
	members, err := a.Members(soon(t), "orders")
	require.NoError(t, err)
	require.Len(t, members, 3)
	require.Equal(t, "orders b0", members[0].String())
}

func TestAgent_CancelReachesHandler(t *testing.T) {
	t.Parallel()
	_, url := started(t, exchange.Config{Policy: everybody})
	ended := make(chan error, 1)
	join(t, agent.Config{Exchange: []string{url}, Name: "orders", ID: "b", Service: service("b", ended)})
	p := callerOf(t, joined(t, url, "", "a"), "orders")
	ctx, cancel := context.WithCancel(soon(t))
	call, err := hold.Open(ctx, p, struct{}{})
	require.NoError(t, err)
	_, err = call.Recv(ctx)
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

func TestAgent_MemberLeaves(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{Policy: everybody})
	a, b := joined(t, url, "", "a"), joined(t, url, "orders", "b")
	p := callerOf(t, a, "orders")
	require.Equal(t, "b", ask(t, p))
	require.NoError(t, b.Shutdown(soon(t)))
	require.ErrorIs(t, b.Err(), agent.ErrClosed)
	require.Eventually(t, func() bool {
		members, err := a.Members(soon(t), "orders")
		return err == nil && len(members) == 0
	}, enough, time.Millisecond)
	require.Eventually(t, func() bool { return x.Stats().Sessions == 0 }, enough, time.Millisecond)
	joined(t, url, "orders", "c")
	require.Equal(t, "c", ask(t, p))
}

func TestAgent_TargetGone(t *testing.T) {
	t.Parallel()
	_, url := started(t, exchange.Config{Policy: everybody})
	a, b := joined(t, url, "", "a"), joined(t, url, "orders", "b")
	p := callerOf(t, a, "orders")
	call, err := hold.Open(soon(t), p, struct{}{})
	require.NoError(t, err)
	_, err = call.Recv(soon(t))
	require.NoError(t, err)
	require.NoError(t, b.Close())
	_, err = call.Result(soon(t))
	require.ErrorIs(t, err, asterisque.ErrSessionClosed)
	_, err = whoami.Call(soon(t), p, struct{}{}, asterisque.WithFailFast())
	require.ErrorIs(t, err, asterisque.ErrUnavailable)
}

func TestAgent_PoolsShareWatch(t *testing.T) {
	t.Parallel()
	_, url := started(t, exchange.Config{Policy: everybody})
	a := joined(t, url, "", "a")
	for i := range 3 {
		joined(t, url, "tills", fmt.Sprint("t", i))
	}
	for i := range 200 { // an exchange allows a node to watch 64 names
		id := fmt.Sprint("t", i%3)
		p, err := a.At(t.Context(), "tills", id)
		require.NoError(t, err)
		defer p.Close()
		require.Equal(t, id, ask(t, p))
	}
	p := callerOf(t, a, "tills")
	joined(t, url, "tills", "t3")
	require.Eventually(t, func() bool { return len(p.Servers()) == 4 }, enough, time.Millisecond, "news reach all")
}

func TestAgent_AnyWire(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{Policy: everybody})
	joined(t, url, "orders", "b")
	for _, at := range []string{"mem://exchange-any-wire", "unix:" + filepath.Join(t.TempDir(), "x")} {
		ln, err := wire.Listen(t.Context(), at, wire.Options{})
		require.NoError(t, err)
		go x.Serve(context.Background(), ln) // ends with the exchange
		require.Equal(t, "b", ask(t, callerOf(t, joined(t, ln.URL(), "", ""), "orders")))
	}
}
