package exchange_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/exchange/internal/relayproto"
)

func TestAttackPolicy_ForbiddenMembers(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{})
	s := hostile(t, url, never)
	require.NoError(t, register(t, s, "spy", "i"))
	call, err := relayproto.Members.Open(t.Context(), s, "orders")
	require.NoError(t, err)
	c, err := call.Recv(soon(t))
	require.NoError(t, err)
	require.True(t, c.All)
	told := make(chan error, 1)
	go func() { // ends with the call
		_, err := call.Recv(t.Context())
		told <- err
	}()
	for range 5 {
		require.NoError(t, joined(t, url, "orders", "b").Close())
		require.Eventually(t, func() bool { return x.Stats().Nodes == 1 }, enough, time.Millisecond)
	}
	require.NoError(t, x.Close())
	require.Error(t, <-told, "no change was sent before the end")
}

func TestAttackPolicy_NATSOutage(t *testing.T) {
	t.Parallel()
	b := natsServer(t)
	_, url := bridge(t, b, exchange.Config{})
	joined(t, url, "orders", "b")
	s := hostile(t, url, never)
	require.NoError(t, register(t, s, "spy", "i"))
	b.Close()
	for _, name := range []string{"orders", "nobody"} {
		call, err := relayproto.Dial.Open(t.Context(), s, relayproto.Target{Name: name, ID: "b"}, asterisque.WithTTL(time.Second/2))
		require.NoError(t, err)
		_, err = call.Recv(soon(t))
		require.ErrorIs(t, err, asterisque.ErrExpired, name)
	}
}
