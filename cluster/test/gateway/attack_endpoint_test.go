package gateway_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/gateway"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/codec"
)

func TestAttackEndpoint_ReplySubjects(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc, stranger := nodeAndStranger(t)
		kv := bucketOf(t, nc)
		opened(t, orders(nc, "a", microService(), gateway.Endpoint{Function: 10}, gateway.Endpoint{Function: 11}))
		require.NoError(t, stranger.PublishRequest("orders.greet", "$KV.b.key", []byte(`"what a stranger wants to be there"`)))
		require.NoError(t, stranger.PublishRequest("orders.fail", "$JS.API.STREAM.DELETE.KV_b", []byte(`"a reply without payload"`)))
		requested(t, stranger, "orders.greet", `""`)
		requested(t, stranger, "orders.fail", `""`)
		requireUntouched(t, kv)

		greet := gathered[micro.Stats](t, nc, micro.StatsVerb, "orders", "a", 1)[0].Endpoints[0]
		require.Equal(t, "orders.greet", greet.Subject)
		require.Equal(t, 1, greet.NumErrors)
		require.Contains(t, greet.LastError, "dropped: its reply subject begins with '$'")
	})
}

// endpointCalls is the maximum number of concurrent requests of one endpoint.
const endpointCalls = 128

func TestAttackEndpoint_ManyRequests(t *testing.T) {
	nc, stranger := nodeAndStranger(t)
	svc, begun, letGo := heldService()
	opened(t, offering(nc, svc, gateway.Endpoint{Function: 10}))
	replies := inbox(t, stranger)
	for range endpointCalls {
		require.NoError(t, stranger.PublishRequest("orders.held", replies.Subject, []byte("7")))
		<-begun
	}
	before := runtime.NumGoroutine()
	for range 100 {
		requireFailed(t, requested(t, stranger, "orders.held", "8"), codec.Overloaded, "128 requests of this endpoint run already")
	}
	require.Less(t, runtime.NumGoroutine(), before+50)
	require.Empty(t, begun)
	close(letGo)
	for range endpointCalls {
		require.Equal(t, "7", string(replyIn(t, replies).Data))
	}
	require.Equal(t, "9", string(requested(t, stranger, "orders.held", "9").Data), "there is room again")
}

func TestAttackEndpoint_OthersServe(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc, stranger := nodeAndStranger(t)
		svc, begun, letGo := heldService()
		defer close(letGo)
		asterisque.Func[int, int](13, "other").Handle(svc, nil0)
		opened(t, offering(nc, svc, gateway.Endpoint{Function: 10}, gateway.Endpoint{Function: 13}))
		for range endpointCalls {
			require.NoError(t, stranger.PublishRequest("orders.held", "_INBOX.none", []byte("7")))
			<-begun
		}
		require.Equal(t, "0", string(requested(t, stranger, "orders.other", "1").Data))
	})
}

func TestEndpoint_WithoutReplySubject(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc, stranger := nodeAndStranger(t)
		svc, begun, letGo := heldService()
		close(letGo)
		opened(t, offering(nc, svc, gateway.Endpoint{Function: 10}))
		require.NoError(t, stranger.Publish("orders.held", []byte("7")))
		<-begun
		require.Equal(t, "9", string(requested(t, stranger, "orders.held", "9").Data))
	})
}

func TestAttackEndpoint_GiantParameters(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc, stranger := nodeAndStranger(t)
		opened(t, offering(nc, microService(), gateway.Endpoint{Function: 10}))
		replies := inbox(t, stranger)
		giant := []byte(`"` + strings.Repeat("x", 1<<20-2) + `"`)
		for range 8 {
			require.NoError(t, stranger.PublishRequest("orders.greet", replies.Subject, giant))
		}
		requireFailed(t, replyIn(t, replies), codec.TooLarge, "max_payload")
		// A request is dropped if more than 4 MiB wait before it.
		require.Eventually(t, func() bool {
			m, err := natstest.Request(stranger, "orders.greet", []byte(`"you"`), time.Second)
			return err == nil && m.Header == nil
		}, soon, time.Millisecond)
	})
}
