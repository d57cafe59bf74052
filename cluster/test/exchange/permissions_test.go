package exchange_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/exchange"
)

var accountBlock = regexp.MustCompile("(?s)```text\n(accounts {.*?)```")

// guarded starts a NATS server with the account configuration of docs/cluster.md.
func guarded(t *testing.T) *broker.Broker {
	t.Helper()
	text, err := os.ReadFile("../../../docs/cluster.md")
	require.NoError(t, err)
	found := accountBlock.FindSubmatch(text)
	require.NotNil(t, found, "the page shows an account")
	file := filepath.Join(t.TempDir(), "nats-server.conf")
	require.NoError(t, os.WriteFile(file, found[1], 0o600))
	b, err := broker.Start(broker.Config{ConfigFile: file})
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	return b
}

// as joins a node to the cluster of b as a user, until the test ends.
func as(t *testing.T, user string, b *broker.Broker, cfg cluster.Config) *cluster.Cluster {
	t.Helper()
	cfg.NATS = b.URL()
	cfg.Options = []nats.Option{nats.UserInfo(user, "secret"), nats.CustomInboxPrefix("_INBOX." + user)}
	c, err := cluster.Join(soon(t), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestPermissions_Exchange(t *testing.T) {
	t.Parallel()
	b := guarded(t)
	as(t, "keeper", b, cluster.Config{Name: "keeper"})
	orders := as(t, "orders", b, cluster.Config{Name: "orders", ID: "o", Service: service("o", nil)})
	in := as(t, "exchange", b, cluster.Config{})
	_, url := started(t, exchange.Config{Policy: everybody, Cluster: in})
	plc := joined(t, url, "plc", "p")
	require.Equal(t, "o", ask(t, callerOf(t, plc, "orders")))
	toPLC, err := orders.Caller(t.Context(), "plc")
	require.NoError(t, err)
	defer toPLC.Close()
	require.Equal(t, "p", ask(t, toPLC))
	require.NoError(t, plc.Close())
	require.Eventually(t, func() bool {
		members, err := orders.Members(soon(t), "plc")
		return err == nil && len(members) == 0
	}, enough, 10*time.Millisecond)
	if err := in.Conn().LastError(); err != nil {
		require.ErrorContains(t, err, "asterisque_main_alive", "which is for finding lost nodes: another node does")
	}
}
