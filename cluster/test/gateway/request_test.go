package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/gateway"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/codec"
)

func TestEndpoint_Request(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, ""))
		var around []string
		opened(t, offering(nc, microService(), gateway.Endpoint{Function: 10}, gateway.Endpoint{Function: 10, Subject: "hello"}),
			asterisque.WithInboundInterceptors(func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
				around = append(around, c.Name()+" by "+c.Session().Peer().ID)
				return next(ctx, c)
			}))
		require.Equal(t, `"hello, you"`, string(requested(t, nc, "orders.greet", `"you"`).Data))
		m := requested(t, nc, "hello", "")
		require.Equal(t, `"hello, "`, string(m.Data), "an empty payload is null")
		require.Empty(t, m.Header)
		require.Equal(t, []string{"greet by nats endpoint", "greet by nats endpoint"}, around)
	})
}

func TestEndpoint_ErrorHeaders(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, ""))
		svc := microService()
		asterisque.Func[int, int](20, "own").Handle(svc, func(context.Context, int) (int, error) {
			return 0, &asterisque.Abort{Code: 4711, Message: "two\r\nlines: ö"}
		})
		asterisque.Func[int, int](21, "bare").Handle(svc, func(context.Context, int) (int, error) { return 0, asterisque.ErrStopped })
		opened(t, offering(nc, svc,
			gateway.Endpoint{Function: 10}, gateway.Endpoint{Function: 11}, gateway.Endpoint{Function: 20}, gateway.Endpoint{Function: 21}))

		requireFailed(t, requested(t, nc, "orders.fail", `"broken"`), codec.Failed, "broken")
		requireFailed(t, requested(t, nc, "orders.own", `1`), 4711, "lines: ö")
		requireFailed(t, requested(t, nc, "orders.bare", `1`), codec.Stopped, "stopped")
		for _, garbage := range []string{`{`, `5`, "\x00\xff", strings.Repeat("[", 1<<20)} {
			requireFailed(t, requested(t, nc, "orders.greet", garbage), codec.BadParams, "greet")
		}
		require.Equal(t, `"hello, you"`, string(requested(t, nc, "orders.greet", `"you"`).Data))
	})
}

func TestEndpoint_LargeResult(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, ""))
		svc := asterisque.NewService()
		asterisque.Func[int, string](10, "long").Handle(svc, func(_ context.Context, n int) (string, error) { return strings.Repeat("x", n), nil })
		opened(t, offering(nc, svc, gateway.Endpoint{Function: 10}))
		require.Len(t, requested(t, nc, "orders.long", "1048574").Data, 1<<20, "with two quotes")
		requireFailed(t, requested(t, nc, "orders.long", "1048575"), codec.TooLarge, "1048577 bytes, and a message of this NATS server 1048576 at most")
	})
}

func TestEndpoint_Timeout(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, ""))
		svc := asterisque.NewService()
		ended := make(chan error, 1)
		asterisque.Func[int, int](10, "slow").Handle(svc, func(ctx context.Context, _ int) (int, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return 0, ctx.Err()
		})
		opened(t, offering(nc, svc, gateway.Endpoint{Function: 10, Timeout: 10 * time.Millisecond}))
		requireFailed(t, requested(t, nc, "orders.slow", "1"), codec.Expired, "")
		require.Error(t, <-ended)
	})
}

func TestEndpoint_Trace(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, ""))
		traces := make(chan string, 1)
		opened(t, offering(nc, microService(), gateway.Endpoint{Function: 10}),
			asterisque.WithInboundInterceptors(func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
				traces <- string(c.Trace())
				return next(ctx, c)
			}))
		const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		for _, test := range []struct{ header, value, other, state, want string }{
			{"traceparent", parent, "tracestate", "a=1", parent + "\na=1"},
			{"Traceparent", parent, "Tracestate", "a=1", parent + "\na=1"},
			{"traceparent", parent, "tracestate", strings.Repeat("x", 600), parent},
			{"traceparent", strings.Repeat("x", 600), "tracestate", "a=1", ""},
			{"other", "x", "tracestate", "a=1", ""},
		} {
			m := &nats.Msg{Subject: "orders.greet", Header: nats.Header{test.header: {test.value}, test.other: {test.state}}}
			_, err := natstest.RequestMsg(nc, m, soon)
			require.NoError(t, err)
			require.Equal(t, test.want, <-traces)
		}
	})
}

func TestEndpoint_Tools(t *testing.T) {
	t.Parallel()
	nc := microConn(t, microBroker(t, ""))
	svc := microService()
	opened(t, orders(nc, "a", svc, gateway.Endpoint{Function: 11}, gateway.Endpoint{Function: 11, Subject: "other.fail", Queue: "all"}))
	requested(t, nc, "orders.fail", `"broken"`)

	var shown []string
	for _, e := range gathered[micro.Info](t, nc, micro.InfoVerb, "orders", "a", 1)[0].Endpoints {
		shown = append(shown, e.Name+" at "+e.Subject+" in "+e.QueueGroup)
	}
	require.Equal(t, []string{"greet at asterisque.wire.main.a in ", "fail at orders.fail in q", "other_fail at other.fail in all"}, shown)
	stats := gathered[micro.Stats](t, nc, micro.StatsVerb, "orders", "a", 1)[0].Endpoints
	require.Equal(t, 1, stats[1].NumRequests)
	require.Equal(t, 1, stats[1].NumErrors)
	require.Equal(t, "1:broken", stats[1].LastError)
	require.Positive(t, stats[1].AverageProcessingTime)
	require.Zero(t, stats[2].NumRequests)
	var total asterisque.FunctionStats
	require.NoError(t, json.Unmarshal(stats[2].Data, &total))
	require.EqualValues(t, 1, total.Calls, "those of the function come by whatever way")
}

func TestEndpoint_QueueGroup(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, ""))
		for _, id := range []string{"a", "b"} {
			opened(t, orders(nc, id, microService(), gateway.Endpoint{Function: 10}))
		}
		const requests = 100 // all of them to one: improbable
		for range requests {
			requested(t, nc, "orders.greet", `"you"`)
		}
		var counts []int
		for _, id := range []string{"a", "b"} {
			greet := gathered[micro.Stats](t, nc, micro.StatsVerb, "orders", id, 1)[0].Endpoints[0]
			require.Positive(t, greet.NumRequests, id)
			counts = append(counts, greet.NumRequests)
		}
		require.Equal(t, requests, counts[0]+counts[1], "each request goes to one")
	})
}

func TestEndpoint_SessionLost(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, ""))
		_, node := opened(t, offering(nc, microService(), gateway.Endpoint{Function: 10}))
		require.Eventually(t, func() bool { return len(node.Sessions()) == 1 }, soon, time.Millisecond)
		first := node.Sessions()[0]
		require.NoError(t, first.Close())
		require.Eventually(t, func() bool {
			all := node.Sessions()
			return len(all) == 1 && all[0] != first
		}, soon, time.Millisecond, "the peer connects again")
		require.Eventually(t, func() bool {
			m, err := natstest.Request(nc, "orders.greet", []byte(`"you"`), soon)
			return err == nil && m.Header == nil
		}, soon, time.Millisecond)
	})
}

func TestEndpoint_ClosedNode(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, ""))
		_, node := opened(t, offering(nc, microService(), gateway.Endpoint{Function: 10, Timeout: time.Hour}))
		node.Close()
		require.Eventually(t, func() bool {
			m, err := natstest.Request(nc, "orders.greet", []byte(`"you"`), soon)
			return err == nil && m.Header.Get(micro.ErrorCodeHeader) != ""
		}, soon, time.Millisecond)
	})
}
