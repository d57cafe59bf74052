package cluster_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

// news records the changes that Watch yields for a name.
type news struct {
	mu  sync.Mutex
	all []string // guarded by mu
}

func watching(t *testing.T, c *cluster.Cluster, name string) *news {
	n := new(news)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { // ends with ctx
		defer close(over)
		for change, err := range c.Watch(ctx, name) {
			if err == nil {
				n.mu.Lock()
				n.all = append(n.all, string(change.Kind)+" "+change.Member.ID)
				n.mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-over })
	return n
}

func (n *news) told(t *testing.T, want ...string) {
	t.Helper()
	var all []string
	same := func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		all = append(all[:0:0], n.all...)
		return len(all) >= len(want)
	}
	require.Eventually(t, same, natstest.Timeout, time.Millisecond)
	require.Equal(t, want, all)
}

func TestPresence_Changes(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		c := joined(t, config(b, "watcher", "w"))
		joined(t, config(b, "other", "o"))
		n := watching(t, c, "orders")
		a := joined(t, config(b, "orders", "a"))
		n.told(t, "joined a")
		require.NoError(t, a.Close())
		n.told(t, "joined a", "left a")
		lost := joined(t, config(b, "orders", "b"))
		n.told(t, "joined a", "left a", "joined b")
		vanish(lost)
		n.told(t, "joined a", "left a", "joined b", "lost b")
	})
}

func TestPresence_Shutdown(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		c := joined(t, config(b, "", ""))
		n := watching(t, c, "orders")
		a := joined(t, config(b, "orders", "a"))
		p := callerOf(t, c, "orders")
		ask(t, p)
		call, err := hold.Open(t.Context(), p, struct{}{})
		require.NoError(t, err)
		_, err = call.Recv(t.Context())
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() { done <- a.Shutdown(t.Context()) }() // ends with the call
		n.told(t, "joined a", "draining a")
		require.NoError(t, call.Send(t.Context(), struct{}{}))
		require.NoError(t, <-done)
		n.told(t, "joined a", "draining a", "left a")
	})
}

func TestPresence_LostByPeer(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		// with the default life of 15 seconds
		b := natstest.StartServer(t, broker.Config{})
		n := watching(t, joined(t, config(b, "", "")), "orders")
		a := joined(t, listening(config(b, "orders", "a")))
		ask(t, callerOf(t, joined(t, config(b, "", "")), "orders"))
		begin := time.Now()
		vanish(a)
		n.told(t, "joined a", "lost a")
		require.Less(t, time.Since(begin), 15*time.Second/2)
	})
}

func TestPresence_AliveStays(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		c := joined(t, config(b, "watcher", "w"))
		n := watching(t, c, "orders")
		a := joined(t, listening(config(b, "orders", "a")))
		p := callerOf(t, c, "orders")
		ask(t, p)
		for _, s := range a.Node().Sessions() {
			require.NoError(t, s.Close())
		}
		require.Equal(t, "a", ask(t, p), "in a new session")
		fakeclock.Sleep(2 * lifeTime)
		n.told(t, "joined a")
	})
}

func TestPresence_BackAfterLost(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		c := joined(t, config(b, "watcher", "w"))
		n := watching(t, c, "orders")
		joined(t, config(b, "orders", "a"))
		n.told(t, "joined a")
		// like a reporter and the reaper
		require.NoError(t, bucket(t, c, "alive").Delete(t.Context(), "orders.a"))
		require.NoError(t, bucket(t, c, "nodes").Delete(t.Context(), "orders.a"))
		n.told(t, "joined a", "lost a", "joined a")
	})
}

func TestPresence_SameID(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		n := watching(t, joined(t, config(b, "", "")), "orders")
		first := joined(t, config(b, "orders", "a"))
		n.told(t, "joined a")
		second := joined(t, config(b, "orders", "a"))
		n.told(t, "joined a", "joined a")
		select {
		case <-first.Done():
			require.ErrorIs(t, first.Err(), cluster.ErrReplaced)
		case <-time.After(natstest.Timeout):
			t.Fatal("the first one is not notified")
		}
		require.NoError(t, first.Close())
		require.NoError(t, second.Err())
		all, err := second.Members(t.Context(), "orders")
		require.NoError(t, err)
		require.Len(t, all, 1, "the first one takes back nothing of the second")
	})
}

func TestReaper_OneAtATime(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		c := joined(t, config(b, "", ""))
		n := watching(t, c, "orders")
		first := joined(t, config(b, "orders", "a"))
		reaping := func() string {
			e, err := entry(t, c, "alive", "reaper")
			if err != nil {
				return ""
			}
			return string(e.Value())
		}
		require.Eventually(t, func() bool { return reaping() == "a" }, natstest.Timeout, time.Millisecond)
		joined(t, config(b, "other", "o"))
		n.told(t, "joined a")
		vanish(first)
		n.told(t, "joined a", "lost a")
		require.Equal(t, "o", reaping())
	})
}

func TestReaper_NoSign(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		c := joined(t, config(b, "watcher", "w"))
		m := cluster.Member{Name: "orders", ID: "ghost", State: cluster.Present}
		_, err := bucket(t, c, "nodes").Put(t.Context(), "orders.ghost", entryOf(t, m))
		require.NoError(t, err)
		n := watching(t, c, "orders")
		n.told(t, "joined ghost", "lost ghost")
		_, err = entry(t, c, "nodes", "orders.ghost")
		require.ErrorIs(t, err, jetstream.ErrKeyNotFound)
	})
}
