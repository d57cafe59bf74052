package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/wire"
)

// hosted hosts a node with the function ownID, until the test ends.
func hosted(t *testing.T, c *cluster.Cluster, name, id string) *cluster.Hosted {
	t.Helper()
	svc := asterisque.NewService()
	ownID.Handle(svc, func(context.Context, struct{}) (string, error) { return id, nil })
	node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithID(id))
	t.Cleanup(func() { node.Close() })
	h, err := c.Host(t.Context(), cluster.Member{Name: name, ID: id, Identity: name}, func(w wire.Wire) {
		node.Accept(context.Background(), w)
	})
	require.NoError(t, err)
	t.Cleanup(func() { h.Close() })
	return h
}

func TestHost_CalledByName(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		host, c := joined(t, config(b, "", "host")), joined(t, config(b, "", "caller"))
		h := hosted(t, host, "plc", "p1")
		hosted(t, host, "plc", "p2")
		answering(t, callerOf(t, c, "plc"), "p1", "p2")
		h.Drain()
		answering(t, callerOf(t, c, "plc"), "p2")
		require.NoError(t, h.Close())
		require.ErrorIs(t, h.Err(), cluster.ErrClosed)
		var members []cluster.Member
		require.Eventually(t, func() bool { // the other nodes are notified a moment later
			var err error
			members, err = c.Members(t.Context(), "plc")
			return err == nil && len(members) == 1
		}, natstest.Timeout, 10*time.Millisecond)
		w, err := c.Dial(t.Context(), members[0])
		require.NoError(t, err)
		require.NoError(t, w.Close())
	})
}

func TestHost_ReplacedAndLeaves(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		first, second := joined(t, config(b, "", "first")), joined(t, config(b, "", "second"))
		h := hosted(t, first, "plc", "p1")
		hosted(t, second, "plc", "p1")
		require.Eventually(t, func() bool { return h.Err() != nil }, natstest.Timeout, 10*time.Millisecond)
		require.ErrorIs(t, h.Err(), cluster.ErrReplaced)
		require.NoError(t, second.Close())
		c := joined(t, config(b, "", "caller"))
		require.Eventually(t, func() bool {
			members, err := c.Members(t.Context(), "plc")
			return err == nil && len(members) == 0
		}, natstest.Timeout, 10*time.Millisecond)
		_, err := second.Host(t.Context(), cluster.Member{Name: "plc", ID: "p2"}, nil)
		require.ErrorIs(t, err, cluster.ErrClosed)
	})
}

func TestHost_NameTaken(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		joined(t, config(b, "orders", "o1"))
		c := joined(t, config(b, "", "host"))
		for _, id := range []string{"p1", "o1"} {
			_, err := c.Host(t.Context(), cluster.Member{Name: "orders", ID: id, Identity: "plc"}, nil)
			require.ErrorIs(t, err, cluster.ErrNameTaken)
		}
		_, err := c.Host(t.Context(), cluster.Member{Name: "a b", ID: "p1"}, nil)
		require.ErrorContains(t, err, "a b")
	})
}
