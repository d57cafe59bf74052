package gateway_test

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/gateway"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/pipe"
)

func TestEndpoint_Errors(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, ""))
		svc := microService()
		testCount.Handle(svc, func(context.Context, int, *asterisque.Pipe[int, int]) (int, error) { return 0, nil })
		node := asterisque.NewNode(asterisque.WithService(svc))
		defer node.Close()
		for want, list := range map[string][]gateway.Endpoint{
			"no such function":                                {{Function: 99}},
			`12 "count": it carries a stream`:                 {{Function: 12}},
			`"a..b" cannot be its subject`:                    {{Function: 10, Subject: "a..b"}},
			`"a.*" cannot be its subject`:                     {{Function: 10, Subject: "a.*"}},
			`"a b" cannot be its subject`:                     {{Function: 10, Subject: "a b"}},
			`">" cannot be its subject`:                       {{Function: 10, Subject: ">"}},
			`"$SRV.x" cannot be its subject`:                  {{Function: 10, Subject: "$SRV.x"}},
			`"q q" cannot be its queue group`:                 {{Function: 10, Queue: "q q"}},
			"functions 10 and 11 have the same subject \"s\"": {{Function: 10, Subject: "s"}, {Function: 11, Subject: "s", Queue: "r"}},
			"Timeout -1ns is negative":                        {{Function: 10, Timeout: -1}},
		} {
			c := orders(nc, "a", svc, list...)
			c.Node = node
			_, err := gateway.Open(t.Context(), c)
			require.ErrorContains(t, err, want)
		}
		c := orders(nc, "a", nil, gateway.Endpoint{Function: 10})
		c.Node = node
		_, err := gateway.Open(t.Context(), c)
		require.ErrorContains(t, err, "no such function", "a node without a Service")
		require.Zero(t, nc.NumSubscriptions())
		require.Empty(t, node.Sessions())
	})
}

func TestEndpoint_ForbiddenSubject(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, `{user: narrow, password: p, permissions: {subscribe: "orders.greet"}}`), nats.UserInfo("narrow", "p"))
		svc := microService()
		node := asterisque.NewNode(asterisque.WithService(svc))
		defer node.Close()
		c := orders(nc, "a", svc, gateway.Endpoint{Function: 10}, gateway.Endpoint{Function: 11})
		c.Node = node
		_, err := gateway.Open(t.Context(), c)
		require.ErrorIs(t, err, nats.ErrPermissionViolation)
		require.ErrorContains(t, err, "to subscribe to orders.fail:")
		require.Zero(t, nc.NumSubscriptions())
	})
}

func TestEndpoint_UntypedFunction(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, ""))
		svc := asterisque.NewService()
		svc.Handle(10, "echo bytes", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
			return append([]byte("<"), params...), nil
		})
		opened(t, offering(nc, svc, gateway.Endpoint{Function: 10}))
		require.Equal(t, "<{no JSON", string(requested(t, nc, "orders.echo_bytes", "{no JSON").Data))
	})
}
