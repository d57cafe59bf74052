package gateway_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/internal/gateway"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// strangers are two users of a server. One may only send and answer requests, and has no access to
// buckets.
const strangers = `{user: node, password: p},
	{user: stranger, password: p, permissions: {publish: ["$SRV.>", "orders.>", "_INBOX.>"], subscribe: ["_INBOX.>", "$SRV.>"]}}`

// nodeAndStranger returns connections of both to one server.
func nodeAndStranger(t *testing.T) (node, stranger *nats.Conn) {
	t.Helper()
	b := microBroker(t, strangers)
	return microConn(t, b, nats.UserInfo("node", "p")), microConn(t, b, nats.UserInfo("stranger", "p"))
}

// bucketOf returns a bucket that a node may write to.
func bucketOf(t *testing.T, nc *nats.Conn) jetstream.KeyValue {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b"})
	require.NoError(t, err)
	return kv
}

// requireUntouched requires that a bucket exists and is empty.
func requireUntouched(t *testing.T, kv jetstream.KeyValue) {
	t.Helper()
	status, err := kv.Status(t.Context())
	require.NoError(t, err)
	require.Zero(t, status.Values())
}

func TestAttackTools_ReplySubjects(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc, stranger := nodeAndStranger(t)
		kv := bucketOf(t, nc)
		opened(t, orders(nc, "a", nil))
		for _, reply := range []string{"$KV.b.key", "$JS.API.STREAM.DELETE.KV_b"} {
			require.NoError(t, stranger.PublishRequest("$SRV.PING.orders", reply, nil))
			require.NoError(t, stranger.PublishRequest("$SRV.STATS", reply, []byte("{}")))
		}
		gathered[micro.Ping](t, stranger, micro.PingVerb, "", "", 1)
		gathered[micro.Ping](t, stranger, micro.PingVerb, "orders", "", 1)
		require.NoError(t, natstest.Flush(nc))
		requireUntouched(t, kv)
	})
}

func TestAttackTools_PingFlood(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc, stranger := nodeAndStranger(t)
		opened(t, orders(nc, "a", microService()))
		answers := inbox(t, stranger)
		begin := time.Now()
		for range 20_000 {
			require.NoError(t, stranger.PublishRequest("$SRV.STATS", answers.Subject, nil))
		}
		require.Eventually(t, func() bool {
			_, err := natstest.Request(stranger, "$SRV.PING.orders.a", nil, 100*time.Millisecond)
			return err == nil
		}, soon, time.Millisecond, "it answers again, once the flood is over")
		got, _, err := answers.Pending()
		require.NoError(t, err)
		require.LessOrEqual(t, got, int(1025*(1+time.Since(begin).Seconds())))
	})
}

func TestAttackTools_BadRequests(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc, stranger := nodeAndStranger(t)
		var slow sync.Map // *nats.Subscription: it has dropped requests
		nc.SetErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrSlowConsumer) {
				slow.Store(sub, nil)
			}
		})
		opened(t, orders(nc, "a", microService()))
		giant := []byte(strings.Repeat("x", 1<<20-100))
		for range 10 {
			require.NoError(t, stranger.Publish("$SRV.PING", nil), "without a reply subject")
			require.NoError(t, stranger.PublishRequest("$SRV.NONE", "_INBOX.none", nil))
			for _, subject := range []string{"$SRV.PING", "$SRV.PING.orders", "$SRV.PING.orders.a"} {
				require.NoError(t, stranger.PublishRequest(subject, "_INBOX.none", giant))
			}
			require.NoError(t, stranger.PublishMsg(&nats.Msg{
				Subject: "$SRV.INFO", Reply: "_INBOX.none", Header: nats.Header{"x": {string(giant[:1<<20-1000])}},
			}))
		}
		require.Eventually(t, func() bool {
			_, err := natstest.Request(stranger, "$SRV.PING.orders.a", []byte("\xff{"), 100*time.Millisecond)
			return err == nil
		}, soon, time.Millisecond)
		synctest.Wait() // for the errors of package nats
		var subjects []string
		for sub := range slow.Range {
			sub := sub.(*nats.Subscription)
			subjects = append(subjects, sub.Subject)
			_, bytes, err := sub.MaxPending()
			require.NoError(t, err)
			require.LessOrEqual(t, bytes, 64<<10+1<<20, "package nats counts one that it drops, too")
			dropped, err := sub.Dropped()
			require.NoError(t, err)
			require.GreaterOrEqual(t, dropped, 10, "all giant requests")
		}
		require.ElementsMatch(t, []string{"$SRV.*", "$SRV.*.orders", "$SRV.*.orders.a"}, subjects)
	})
}

func TestAttackTools_ForgedAnswers(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc, stranger := nodeAndStranger(t)
		svc := microService()
		opened(t, orders(nc, "a", svc, gateway.Endpoint{Function: 10}))
		lie, err := json.Marshal(micro.Info{ServiceIdentity: micro.ServiceIdentity{Name: "orders", ID: "a", Version: "9.9.9"}})
		require.NoError(t, err)
		sub, err := stranger.Subscribe("$SRV.>", func(m *nats.Msg) { m.Respond(lie) })
		require.NoError(t, err)
		defer sub.Unsubscribe()
		require.NoError(t, natstest.Flush(stranger))

		var versions []string
		for _, i := range gathered[micro.Info](t, nc, micro.InfoVerb, "orders", "a", 2) {
			versions = append(versions, i.Version)
		}
		require.ElementsMatch(t, []string{"0.0.0", "9.9.9"}, versions, "the tools show both")
		require.Equal(t, `"hello, you"`, string(requested(t, nc, "orders.greet", `"you"`).Data), "and calls go where they went")
	})
}
