package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/gateway"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/wire"
)

func TestTools_NameAndID(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := microBroker(t, "")
		nc := microConn(t, b)
		opened(t, orders(nc, "a", nil))
		opened(t, orders(nc, "b", nil))
		opened(t, gateway.Config{NATS: nc, Name: "users", ID: "a", Version: "1.2.3-rc.1+5"})

		require.Equal(t, 3*3, nc.NumSubscriptions())
		var found []string
		for _, p := range gathered[micro.Ping](t, nc, micro.PingVerb, "", "", 3) {
			require.Equal(t, micro.PingResponseType, p.Type)
			found = append(found, p.Name+" "+p.ID+" "+p.Version)
		}
		require.ElementsMatch(t, []string{"orders a 0.0.0", "orders b 0.0.0", "users a 1.2.3-rc.1+5"}, found)
		gathered[micro.Ping](t, nc, micro.PingVerb, "orders", "", 2)
		p := gathered[micro.Ping](t, nc, micro.PingVerb, "orders", "b", 1)
		require.Equal(t, "b", p[0].ID)
		_, err := natstest.Request(nc, "$SRV.PING.orders.c", nil, soon)
		require.ErrorIs(t, err, nats.ErrNoResponders, "there is no such node")
		gathered[micro.Info](t, nc, micro.InfoVerb, "orders", "", 2)
		gathered[micro.Stats](t, nc, micro.StatsVerb, "", "", 3)
	})
}

func TestTools_Functions(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, ""))
		about := orders(nc, "a", microService())
		about.Metadata = map[string]string{"asterisque.region": "eu"}
		opened(t, about)

		info := gathered[micro.Info](t, nc, micro.InfoVerb, "orders", "a", 1)[0]
		require.Equal(t, micro.Info{
			ServiceIdentity: micro.ServiceIdentity{Name: "orders", ID: "a", Version: "0.0.0", Metadata: about.Metadata},
			Type:            micro.InfoResponseType,
			Description:     "ordered goods",
			Endpoints: []micro.EndpointInfo{{
				Name: "greet", Subject: "asterisque.wire.main.a",
				Metadata: map[string]string{"asterisque.function": "10", "asterisque.call": "in a session of asterisque"},
			}, {
				Name: "fail", Subject: "asterisque.wire.main.a",
				Metadata: map[string]string{"asterisque.function": "11", "asterisque.call": "in a session of asterisque"},
			}},
		}, info)
	})
}

func TestTools_Stats(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, ""))
		svc := microService()
		opened(t, orders(nc, "a", svc))
		s := sessionWith(t, asterisque.NewNode(asterisque.WithService(svc)))
		for range 3 {
			_, err := testGreet.Call(t.Context(), s, "you")
			require.NoError(t, err)
		}
		_, err := testFail.Call(t.Context(), s, "no")
		require.ErrorContains(t, err, "no")

		stats := gathered[micro.Stats](t, nc, micro.StatsVerb, "orders", "", 1)[0]
		require.Equal(t, micro.StatsResponseType, stats.Type)
		require.WithinDuration(t, time.Now(), stats.Started, soon)
		require.Len(t, stats.Endpoints, 2)
		greet, fail := stats.Endpoints[0], stats.Endpoints[1]
		require.Equal(t, 3, greet.NumRequests)
		require.Zero(t, greet.NumErrors)
		require.Positive(t, greet.AverageProcessingTime)
		require.Equal(t, 3*greet.AverageProcessingTime, greet.ProcessingTime)
		require.Contains(t, string(greet.Data), `"p99_ns":`)
		require.Equal(t, "fail", fail.Name)
		require.Equal(t, 1, fail.NumErrors)
	})
}

// sessionWith returns a session with a node, until t ends.
func sessionWith(t *testing.T, node *asterisque.Node) *asterisque.Session {
	t.Helper()
	caller := asterisque.NewNode()
	here, there := wire.Pipe()
	go node.Accept(t.Context(), there) // ends with the handshake
	s, err := caller.Attach(t.Context(), here)
	require.NoError(t, err)
	t.Cleanup(func() { caller.Close(); node.Close() })
	return s
}

func TestTools_Reconnect(t *testing.T) {
	b, err := broker.Start(broker.Config{})
	require.NoError(t, err)
	addr := b.Server().Addr().String()
	nc := microConn(t, b, nats.ReconnectWait(1), nats.MaxReconnects(-1))
	opened(t, orders(nc, "a", nil))
	require.NoError(t, b.Close())

	b, err = broker.Start(broker.Config{Addr: addr})
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	asking := microConn(t, b)
	require.Eventually(t, func() bool {
		_, err := natstest.Request(asking, "$SRV.PING.orders.a", nil, soon)
		return err == nil // until then there is no responder
	}, soon, 10*time.Millisecond)
}

func TestTools_ForbiddenSubject(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := microBroker(t, `{user: narrow, password: p, permissions: {subscribe: ["$SRV.*", "$SRV.*.orders", "_INBOX.>"]}}`)
		nc := microConn(t, b, nats.UserInfo("narrow", "p"))
		_, err := gateway.Open(t.Context(), orders(nc, "a", nil))
		require.ErrorIs(t, err, nats.ErrPermissionViolation)
		require.ErrorContains(t, err, "to subscribe to $SRV.*.orders.a:")
		require.Eventually(t, func() bool { return nc.NumSubscriptions() == 0 }, soon, time.Millisecond, "and nothing is left")
	})
}

func TestTools_Disconnected(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, ""))
		g, _ := opened(t, orders(nc, "a", nil))
		nc.Close()
		require.NoError(t, g.Close(t.Context()))
		_, err := gateway.Open(t.Context(), orders(nc, "a", nil))
		require.ErrorIs(t, err, nats.ErrConnectionClosed)
	})
}

func TestTools_ContextEnds(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, ""))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := gateway.Open(ctx, orders(nc, "a", nil))
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestToolsAnswer_TooLarge(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, ""))
		svc := asterisque.NewService()
		for n := range 32 {
			asterisque.Func[int, int](uint16(n), strings.Repeat("n", 40<<10)).Handle(svc, nil0)
		}
		opened(t, orders(nc, "a", svc))
		for _, verb := range []string{"INFO", "STATS"} {
			body := requested(t, nc, "$SRV."+verb, "").Data
			require.LessOrEqual(t, int64(len(body)), nc.MaxPayload())
			var answer struct {
				micro.ServiceIdentity
				Endpoints []any `json:"endpoints"`
			}
			require.NoError(t, json.Unmarshal(body, &answer))
			require.NotEmpty(t, answer.Endpoints)
			left := fmt.Sprintf("%d endpoints: ", 32-len(answer.Endpoints))
			require.Contains(t, answer.Metadata["asterisque.left_out"], left)
		}
	})
}
