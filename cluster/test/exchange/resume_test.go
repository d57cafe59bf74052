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
