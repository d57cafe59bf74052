package cluster

import (
	"os"
	"regexp"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/test/natstest"
)

// page is the page for operators, with the permissions of a NATS server.
const page = "../docs/cluster.md"

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
func as(user string, cfg Config) Config {
	cfg.Options = append(cfg.Options, credentials(user)...)
	return cfg
}

// connected returns a connection of a user, until the test ends.
func connected(t *testing.T, b *broker.Broker, user string) *nats.Conn {
	t.Helper()
	return natstest.Connect(t, b, append(credentials(user), nats.Timeout(bookingTime), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)
}
