package exchange_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/wire"
)

var resume = asterisque.WithResume(asterisque.Resume{For: time.Minute})

// running begins a call of hold, and waits until it runs.
func running(t testing.TB, on asterisque.Caller) *asterisque.StreamCall[[]byte, []byte, struct{}] {
	t.Helper()
	call, err := hold.Open(t.Context(), on, struct{}{})
	require.NoError(t, err)
	_, err = call.Recv(soon(t))
	require.NoError(t, err)
	return call
}

func TestResume_ExchangeRestart(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{Policy: everybody})
	a, b := joined(t, url, "shop", "a", resume), joined(t, url, "orders", "b", resume)
	p := callerOf(t, a, "orders")
	call := running(t, p)
	session := b.Node().Sessions()[0]
	require.NoError(t, x.Close())
	startedAt(t, exchange.Config{Policy: everybody}, url, wire.Options{})
	require.Equal(t, "b", ask(t, p))
	require.Same(t, session, b.Node().Sessions()[0])
	require.NoError(t, call.Untyped().Err())
	call.Abort(nil)
}

func TestResume_Connection(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{Policy: everybody})
	cut := make(chan func(), 10)
	a, b := joined(t, through(t, url, cut), "shop", "a"), joined(t, url, "orders", "b")
	p := callerOf(t, a, "orders")
	call := running(t, p)
	session := b.Node().Sessions()[0]
	(<-cut)()
	require.Equal(t, "b", ask(t, p))
	require.Same(t, session, b.Node().Sessions()[0], "it has not noticed")
	require.EqualValues(t, 1, x.Stats().Relayed)
	call.Abort(nil)
}
