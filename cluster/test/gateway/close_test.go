package gateway_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/gateway"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/codec"
)

// heldService has a function "held" with calls that wait until they are released, or their context
// ends.
func heldService() (svc *asterisque.Service, begun chan struct{}, letGo chan struct{}) {
	svc, begun, letGo = asterisque.NewService(), make(chan struct{}, 1000), make(chan struct{})
	asterisque.Func[int, int](10, "held").Handle(svc, func(ctx context.Context, n int) (int, error) {
		begun <- struct{}{}
		select {
		case <-letGo:
			return n, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
	return svc, begun, letGo
}

// inbox returns a subscription for replies, until t ends.
func inbox(t *testing.T, nc *nats.Conn) *nats.Subscription {
	t.Helper()
	sub, err := nc.SubscribeSync(nc.NewRespInbox())
	require.NoError(t, err)
	t.Cleanup(func() { sub.Unsubscribe() })
	return sub
}

// replyIn returns the next reply.
func replyIn(t *testing.T, sub *nats.Subscription) *nats.Msg {
	t.Helper()
	m, err := natstest.Next(sub, soon)
	require.NoError(t, err)
	return m
}

func TestEndpointClose_Drains(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, ""))
		svc, begun, letGo := heldService()
		g, _ := opened(t, offering(nc, svc, gateway.Endpoint{Function: 10}))
		replies := inbox(t, nc)
		require.NoError(t, nc.PublishRequest("orders.held", replies.Subject, []byte("5")))
		<-begun
		closed := make(chan error)
		go func() { closed <- g.Close(context.Background()) }() // ends with the request
		require.Eventually(t, func() bool {
			_, err := natstest.Request(nc, "orders.held", nil, 20*time.Millisecond)
			return err == nats.ErrNoResponders
		}, soon, time.Millisecond)
		close(letGo)
		require.NoError(t, <-closed)
		require.Equal(t, "5", string(replyIn(t, replies).Data))
	})
}

func TestEndpointClose_ContextEnds(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, ""))
		svc, begun, _ := heldService()
		g, _ := opened(t, offering(nc, svc, gateway.Endpoint{Function: 10}))
		replies := inbox(t, nc)
		require.NoError(t, nc.PublishRequest("orders.held", replies.Subject, []byte("5")))
		<-begun
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, g.Close(ctx), context.DeadlineExceeded)
		requireFailed(t, replyIn(t, replies), codec.Unavailable, "the node leaves the cluster")
	})
}

func TestEndpointClose_Disconnected(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc := microConn(t, microBroker(t, ""))
		g, _ := opened(t, offering(nc, microService(), gateway.Endpoint{Function: 10}))
		nc.Close()
		require.NoError(t, g.Close(t.Context()))
		require.NoError(t, g.Close(t.Context()), "repeated")
	})
}
