package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

func TestOutage_DirectSessions(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		b := natstest.StartServer(t, broker.Config{Dir: dir})
		joined(t, listening(config(b, "orders", "a")))
		c := joined(t, config(b, "", ""))
		p := callerOf(t, c, "orders")
		ask(t, p)
		again := natstest.Restarted(b, dir)
		require.NoError(t, b.Close())
		require.Equal(t, "a", ask(t, p))
		for _, s := range c.Node().Sessions() { // the session is lost as well
			require.NoError(t, s.Close())
		}
		require.Equal(t, "a", ask(t, p))

		natstest.StartServer(t, again)
		joined(t, config(b, "orders", "b"))
		answering(t, p, "a", "b")
	})
}

func TestOutage_SessionsThroughNATS(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		b := natstest.StartServer(t, broker.Config{Dir: dir})
		joined(t, config(b, "orders", "a"))
		p := callerOf(t, joined(t, config(b, "", "")), "orders")
		ask(t, p)
		again := natstest.Restarted(b, dir)
		require.NoError(t, b.Close())
		_, err := ownID.Call(t.Context(), p, struct{}{}, asterisque.WithTTL(300*time.Millisecond))
		require.Error(t, err)
		natstest.StartServer(t, again)
		require.Equal(t, "a", ask(t, p))
	})
}

func TestOutage_JetStreamLostAll(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		c := joined(t, config(b, "", ""))
		joined(t, config(b, "orders", "a"))
		n := watching(t, c, "orders")
		n.told(t, "joined a")
		again := natstest.Restarted(b, "")
		require.NoError(t, b.Close())
		natstest.StartServer(t, again)
		p := callerOf(t, c, "orders")
		require.Equal(t, "a", ask(t, p))
		require.Eventually(t, func() bool {
			e, err := entry(t, c, "nodes", "orders.a")
			return err == nil && e.Revision() > 0
		}, natstest.Timeout, 10*time.Millisecond)
		joined(t, config(b, "orders", "b"))
		n.told(t, "joined a", "joined b")
		all, err := c.Members(t.Context(), "orders")
		require.NoError(t, err)
		require.Len(t, all, 2)
	})
}

func TestOutage_BucketDeleted(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		c := joined(t, config(b, "orders", "a"))
		n := watching(t, joined(t, config(b, "watcher", "w")), "orders")
		n.told(t, "joined a")
		for _, what := range []string{"nodes", "alive"} {
			require.NoError(t, jetStream(t, c).DeleteKeyValue(t.Context(), kv.BucketName("main", what)))
		}
		require.Eventually(t, func() bool {
			_, err := entry(t, c, "nodes", "orders.a")
			return err == nil
		}, natstest.Timeout, 10*time.Millisecond)
		joined(t, config(b, "orders", "b"))
		n.told(t, "joined a", "joined b")
	})
}

func TestOutage_Watch(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		c := joined(t, config(b, "", ""))
		joined(t, config(b, "orders", "a"))
		var told error
		for change, err := range c.Watch(t.Context(), "orders") {
			if err != nil {
				told = err
				break
			}
			require.Equal(t, cluster.Joined, change.Kind)
			require.NoError(t, b.Close())
		}
		require.ErrorIs(t, told, kv.ErrLate)
		_, err := c.Members(t.Context(), "orders")
		require.ErrorIs(t, err, kv.ErrLate, "the name is no longer in use, and NATS cannot be asked")
	})
}
