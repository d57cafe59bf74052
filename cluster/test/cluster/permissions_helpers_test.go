package cluster_test

import (
	"errors"
	"os"
	"regexp"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// page is the page for operators, with the permissions of a NATS server.
const page = "../../../docs/cluster.md"

var accountBlock = regexp.MustCompile("(?s)```text\n(accounts {.*?)```")

// guarded starts a NATS server with the account that the page shows.
func guarded(t *testing.T) *broker.Broker {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	found := accountBlock.FindSubmatch(text)
	require.NotNil(t, found, "the page shows an account")
	return natstest.StartServer(t, broker.Config{ConfigFile: written(t, string(found[1]))})
}

// kept is guarded, with a node that may do the work of the reaper.
func kept(t *testing.T) *broker.Broker {
	t.Helper()
	b := guarded(t)
	joined(t, as("keeper", config(b, "keeper", "k")))
	return b
}

// credentials are the options of a user, with inboxes that no other user can read.
func credentials(user string) []nats.Option {
	return []nats.Option{nats.UserInfo(user, "secret"), nats.CustomInboxPrefix("_INBOX." + user)}
}

// as makes a node use the credentials of a user.
func as(user string, cfg cluster.Config) cluster.Config {
	cfg.Options = append(cfg.Options, credentials(user)...)
	return cfg
}

// connected returns a connection of a user, until the test ends.
func connected(t *testing.T, b *broker.Broker, user string) *nats.Conn {
	t.Helper()
	return natstest.Connect(t, b, append(credentials(user), nats.Timeout(bookingTime), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)
}

func TestPermissions_Users(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := kept(t)
		for user, test := range map[string]struct{ publish, subscribe []string }{
			"keeper": {
				publish: []string{"$JS.API.STREAM.DELETE.KV_asterisque_main_nodes", "$JS.API.STREAM.CREATE.other", "$KV.asterisque_main_claims.orders.1", "$KV.asterisque_main_calls_orders.1",
					"$KV.asterisque_main_sessions.orders.1", "$KV.asterisque_main_results_orders.1", "asterisque.queue.main.orders.1", "asterisque.exchange.main.claim"},
				subscribe: []string{"_INBOX.>", "_INBOX.orders.>", "asterisque.wire.main.orders.a", "asterisque.wire.main.orders.a.resume", ">"},
			},
			"orders": {
				publish: []string{
					"$KV.asterisque_main_nodes.stock", "$KV.asterisque_main_nodes.stock.a", "$KV.asterisque_main_alive.stock.a",
					"$KV.asterisque_main_alive.reaper", "$KV.asterisque_main_claims.stock.1", "$JS.API.STREAM.CREATE.KV_asterisque_main_nodes",
					"$JS.API.STREAM.PURGE.KV_asterisque_main_nodes", "$JS.API.STREAM.UPDATE.KV_asterisque_main_nodes",
					"$KV.asterisque_main_calls_stock.1", "$JS.API.STREAM.DELETE.KV_asterisque_main_calls_orders",
					"$KV.asterisque_main_sessions.stock.1", "asterisque.wire.main.stock.a.resume", "$JS.API.STREAM.DELETE.KV_asterisque_main_sessions",
					"asterisque.queue.main.stock.1", "$KV.asterisque_main_results_stock.1", "$JS.ACK.asterisque_main_queue_stock.x",
					"$JS.API.STREAM.DELETE.asterisque_main_queue_orders", "$JS.API.STREAM.PURGE.asterisque_main_queue_orders",
					"$JS.API.STREAM.DELETE.KV_asterisque_main_results_orders", "asterisque.exchange.main.claim",
				},
				subscribe: []string{"_INBOX.>", "_INBOX.gateway.>", "asterisque.wire.main.stock.a", "asterisque.wire.main.stock.a.resume", "asterisque.queue.main.stock.1", "asterisque.exchange.main.>", "asterisque.wire.main.>", "$KV.>"},
			},
			"gateway": {
				publish: []string{
					"$KV.asterisque_main_nodes.orders", "$KV.asterisque_main_nodes.orders.a", "$KV.asterisque_main_alive.orders.a",
					"$KV.asterisque_main_claims.orders.1", "asterisque.wire.main.stock.a",
					"$JS.API.DIRECT.GET.KV_asterisque_main_nodes.$KV.asterisque_main_nodes.stock.a",
					"$KV.asterisque_main_calls_orders.1", "$JS.API.STREAM.MSG.GET.KV_asterisque_main_calls_orders",
					"$KV.asterisque_main_sessions.orders.1", "$JS.API.STREAM.MSG.GET.KV_asterisque_main_sessions", "asterisque.wire.main.orders.a.resume",
					"asterisque.queue.main.stock.1", "$JS.API.CONSUMER.MSG.NEXT.asterisque_main_queue_orders.class0", "$JS.ACK.asterisque_main_queue_orders.x",
					"$JS.API.STREAM.CREATE.asterisque_main_queue_orders", "$JS.API.STREAM.PURGE.asterisque_main_queue_orders",
				},
				subscribe: []string{"_INBOX.>", "_INBOX.orders.>", "asterisque.wire.main.orders.a", "asterisque.queue.main.orders.1", "$SRV.PING"},
			},
			"exchange": {
				publish: []string{
					"$KV.asterisque_main_nodes.orders", "$KV.asterisque_main_nodes.orders.a", "$KV.asterisque_main_alive.orders.a", "$KV.asterisque_main_alive.reaper",
					"$KV.asterisque_main_claims.plc.1", "$JS.API.STREAM.CREATE.KV_asterisque_main_nodes", "asterisque.wire.main.orders.a.resume",
					"asterisque.queue.main.orders.1", "$KV.asterisque_main_sessions.orders.1",
				},
				subscribe: []string{"_INBOX.>", "_INBOX.orders.>", "asterisque.wire.main.orders.a", "asterisque.exchange.other.x", "$SRV.PING"},
			},
			"agent": {
				publish:   []string{"asterisque.wire.main.orders.a", "$KV.asterisque_main_nodes.orders.a", "$JS.API.INFO", "asterisque.queue.main.orders.1", "asterisque.wire.main.orders.a.resume"},
				subscribe: []string{"_INBOX.>", "asterisque.wire.orders", "asterisque.exchange.main.>"},
			},
		} {
			for _, subject := range test.publish {
				refused(t, b, user, subject, func(nc *nats.Conn) error { return nc.Publish(subject, nil) })
			}
			for _, subject := range test.subscribe {
				refused(t, b, user, subject, func(nc *nats.Conn) error { _, err := nc.SubscribeSync(subject); return err })
			}
		}
	})
}

// refused expects that the NATS server rejects an operation of a user.
func refused(t *testing.T, b *broker.Broker, user, subject string, do func(nc *nats.Conn) error) {
	t.Helper()
	nc := connected(t, b, user)
	defer nc.Close()
	require.NoError(t, errors.Join(do(nc), natstest.Flush(nc)))
	require.ErrorIs(t, nc.LastError(), nats.ErrPermissionViolation, "%s: %s", user, subject)
	require.ErrorContains(t, nc.LastError(), `"`+subject+`"`, user)
}
