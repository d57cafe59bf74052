package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/gateway"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/codec"
)

// soon is the time limit for an event that happens soon.
const soon = 2 * time.Minute

// microBroker returns a server, with users in the format of the configuration file, or none.
func microBroker(t *testing.T, users string) *broker.Broker {
	t.Helper()
	var c broker.Config
	if users != "" {
		c.ConfigFile = filepath.Join(t.TempDir(), "nats.conf")
		require.NoError(t, os.WriteFile(c.ConfigFile, []byte("authorization { users = ["+users+"] }"), 0o600))
	}
	return natstest.StartServer(t, c)
}

// microConn connects to a server until t ends.
func microConn(t *testing.T, b *broker.Broker, opts ...nats.Option) *nats.Conn {
	t.Helper()
	quiet := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})
	return natstest.Connect(t, b, append([]nats.Option{quiet}, opts...)...)
}

var (
	testGreet = asterisque.Func[string, string](10, "greet")
	testFail  = asterisque.Func[string, string](11, "fail")
	testCount = asterisque.Stream[int, int, int, int](12, "count")
)

// microService has a function that succeeds and one that fails.
func microService() *asterisque.Service {
	svc := asterisque.NewService()
	testGreet.Handle(svc, func(_ context.Context, name string) (string, error) { return "hello, " + name, nil })
	testFail.Handle(svc, func(_ context.Context, why string) (string, error) { return "", errors.New(why) })
	return svc
}

// orders describes a node of the name orders.
func orders(nc *nats.Conn, id string, svc *asterisque.Service, list ...gateway.Endpoint) gateway.Config {
	return gateway.Config{
		NATS: nc, Name: "orders", ID: id, Description: "ordered goods", Subject: "asterisque.wire.main." + id,
		Service: svc, Endpoints: list,
	}
}

// offering describes a node of the name orders that only serves endpoints.
func offering(nc *nats.Conn, svc *asterisque.Service, list ...gateway.Endpoint) gateway.Config {
	c := orders(nc, "a", svc, list...)
	c.Hidden = true
	return c
}

// opened returns a gateway until t ends, and its node.
func opened(t *testing.T, c gateway.Config, opts ...asterisque.Option) (*gateway.Gateway, *asterisque.Node) {
	t.Helper()
	if c.Service != nil {
		opts = append(opts, asterisque.WithService(c.Service))
	}
	c.Node = asterisque.NewNode(opts...)
	t.Cleanup(func() { c.Node.Close() })
	g, err := gateway.Open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		g.Close(ctx)
	})
	return g, c.Node
}

// gathered sends a request like natscli, with an empty object, and returns n answers.
func gathered[T any](t *testing.T, nc *nats.Conn, verb micro.Verb, name, id string, n int) (all []T) {
	t.Helper()
	subject, err := micro.ControlSubject(verb, name, id)
	require.NoError(t, err)
	sub, err := nc.SubscribeSync(nc.NewRespInbox())
	require.NoError(t, err)
	defer sub.Unsubscribe()
	require.NoError(t, nc.PublishRequest(subject, sub.Subject, []byte("{}")))
	for range n {
		m, err := natstest.Next(sub, soon)
		require.NoError(t, err, subject)
		require.Empty(t, m.Header)
		var v T
		require.NoError(t, json.Unmarshal(m.Data, &v))
		all = append(all, v)
	}
	require.NoError(t, natstest.Flush(nc))
	left, _, err := sub.Pending()
	require.NoError(t, err)
	require.Zero(t, left, "more have answered to %s", subject)
	return all
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

func nil0(context.Context, int) (int, error) { return 0, nil }
