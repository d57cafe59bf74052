package exchange_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/exchange/internal/relayproto"
)

// A node dials and does not read the answer.
func TestAttackDial_UnreadAnswer(t *testing.T) {
	t.Parallel()
	b := natsServer(t)
	x, url := bridge(t, b, exchange.Config{Policy: everybody})
	inCluster(t, b, cluster.Config{Name: "stock", ID: "c", Service: service("c", nil)})
	joined(t, url, "orders", "b")
	s := hostile(t, url, never)
	require.NoError(t, register(t, s, "", "i"))
	_, err := dial(t, s, "stock", "c")
	require.NoError(t, err)
	before := b.Server().NumSubscriptions()
	for range 20 {
		for _, to := range []relayproto.Target{{Name: "stock", ID: "c"}, {Name: "orders", ID: "b"}} {
			call, err := relayproto.Dial.Open(t.Context(), s, to)
			require.NoError(t, err)
			call.Untyped().Stop()
			call.CloseSend() // in case the answer was faster; otherwise it is an error
			call.Result(soon(t))
		}
	}
	require.Eventually(t, func() bool { return x.Stats().Sessions <= 1 }, enough, time.Millisecond)
	require.Eventually(t, func() bool { return b.Server().NumSubscriptions() <= before }, enough, time.Millisecond)
}
