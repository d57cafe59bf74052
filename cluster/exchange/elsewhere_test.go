package exchange_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/exchange/agent"
	"github.com/asterisque-go/asterisque/tunnel"
	"github.com/asterisque-go/asterisque/wire"
)

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
