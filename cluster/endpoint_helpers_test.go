package cluster

import (
	"context"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/test/natstest"
	"github.com/asterisque-go/asterisque/codec"
)

// offering serves endpoints of a node of the name orders, until t ends.
func offering(t *testing.T, nc *nats.Conn, svc *asterisque.Service, list []Endpoint, opts ...asterisque.Option) *endpoints {
	t.Helper()
	node := asterisque.NewNode(append([]asterisque.Option{asterisque.WithService(svc)}, opts...)...)
	t.Cleanup(func() { node.Close() })
	e, err := newEndpoints(t.Context(), nc, "orders", list, svc, node)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		e.close(ctx)
	})
	return e
}

// requested returns the reply to a request.
func requested(t *testing.T, nc *nats.Conn, subject, payload string) *nats.Msg {
	t.Helper()
	m, err := natstest.Request(nc, subject, []byte(payload), soon)
	require.NoError(t, err)
	return m
}

// requireFailed requires that a reply reports an error in the format of package micro.
func requireFailed(t *testing.T, m *nats.Msg, code codec.Code, message string) {
	t.Helper()
	require.Empty(t, m.Data)
	require.Equal(t, strconv.Itoa(int(code)), m.Header.Get(micro.ErrorCodeHeader), m.Header)
	require.Contains(t, m.Header.Get(micro.ErrorHeader), message)
}
