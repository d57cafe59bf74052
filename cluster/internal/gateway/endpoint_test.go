package gateway

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/codec"
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
		for want, list := range map[string][]Endpoint{
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
			_, err := newEndpoints(t.Context(), nc, "orders", list, svc, node)
			require.ErrorContains(t, err, want)
		}
		_, err := newEndpoints(t.Context(), nc, "orders", []Endpoint{{Function: 10}}, nil, node)
		require.ErrorContains(t, err, "no such function", "a node without a Service")
		require.Zero(t, nc.NumSubscriptions())
		require.Empty(t, node.Sessions())
	})
}

func TestEndpoint_PeerRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		opt  asterisque.Option
		want string
	}{
		"no JSON": {asterisque.WithCodecs(codec.CBOR), "codec"},
		"not let in": {asterisque.WithAccess(asterisque.Access{Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
			require.Equal(t, "mem", p.RemoteAddr.Network())
			return nil, asterisque.ErrUnauthorized.Withf("no %s here", p.ID)
		}}), "no nats endpoint here"},
		"not known": {asterisque.WithAccess(asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
			return nil, errors.New("no database")
		}}), "could not be checked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T) {
				nc := microConn(t, microBroker(t, ""))
				svc := microService()
				node := asterisque.NewNode(asterisque.WithService(svc), test.opt)
				defer node.Close()
				_, err := newEndpoints(t.Context(), nc, "orders", []Endpoint{{Function: 10}}, svc, node)
				require.ErrorContains(t, err, `does not let the peer "nats endpoint" in`)
				require.ErrorContains(t, err, test.want)
			})
		})
	}
}

func TestEndpoint_ContextEnds(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		svc := microService()
		node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithAccess(asterisque.Access{
			Accept: func(ctx context.Context, _ asterisque.Peer) (*asterisque.Grant, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		}))
		defer node.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := newEndpoints(ctx, microConn(t, microBroker(t, "")), "orders", []Endpoint{{Function: 10}}, svc, node)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestEndpoint_ForbiddenSubject(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, `{user: narrow, password: p, permissions: {subscribe: "orders.greet"}}`), nats.UserInfo("narrow", "p"))
		svc := microService()
		node := asterisque.NewNode(asterisque.WithService(svc))
		defer node.Close()
		_, err := newEndpoints(t.Context(), nc, "orders", []Endpoint{{Function: 10}, {Function: 11}}, svc, node)
		require.ErrorIs(t, err, nats.ErrPermissionViolation)
		require.ErrorContains(t, err, "to subscribe to orders.fail:")
		require.Zero(t, nc.NumSubscriptions())
	})
}

func TestEndpoint_None(t *testing.T) {
	t.Parallel()
	e, err := newEndpoints(t.Context(), nil, "orders", nil, nil, nil)
	require.NoError(t, err)
	require.Empty(t, e.of(10))
	require.NoError(t, e.close(t.Context()))
}

func TestEndpoint_UntypedFunction(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, ""))
		svc := asterisque.NewService()
		svc.Handle(10, "echo bytes", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
			return append([]byte("<"), params...), nil
		})
		offering(t, nc, svc, []Endpoint{{Function: 10}})
		require.Equal(t, "<{no JSON", string(requested(t, nc, "orders.echo_bytes", "{no JSON").Data))
	})
}
