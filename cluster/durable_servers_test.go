package cluster

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/test/natstest"
)

// threeBrokers starts a NATS cluster of three servers, and returns all their URLs.
func threeBrokers(t *testing.T) (all [3]*broker.Broker, urls string) {
	routes := freeAddresses(t, len(all))
	var at []string
	for i := range all {
		all[i] = natstest.StartServer(t, broker.Config{Name: string('a' + rune(i)), At: routes[i], Routes: routes, Dir: t.TempDir()})
		at = append(at, all[i].URL())
	}
	return all, strings.Join(at, ",")
}

// freeAddresses returns addresses without a listener.
func freeAddresses(t *testing.T, n int) (all []string) {
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer ln.Close()
		all = append(all, ln.Addr().String())
	}
	return all
}

func TestDurable_ServerLost(t *testing.T) {
	t.Parallel()
	all, urls := threeBrokers(t)
	s := &bookings{t: t, b: all[0]}
	kept := func(c *Config) {
		c.NATS, c.Replicas, c.Durable.Calls, c.Durable.InMemory = urls, 3, 2, false
	}
	f, release := holds("at a")
	a, b := s.replica("a", f, kept), s.replica("b", answers("at b"), kept)
	key, other := aKey(), aKey()
	first := s.begins(a, key, 1)
	second := s.begins(b, key, 1)
	b.awaitWaiters(1)
	_, err := b.books(other)
	require.NoError(t, err)
	_, err = b.books(aKey())
	requireUnused(t, asterisque.ErrOverloaded, err)

	stream, err := a.durable.js.Stream(t.Context(), a.durable.store.Stream())
	require.NoError(t, err)
	leader := stream.CachedInfo().Cluster.Leader
	require.NoError(t, all[leader[0]-'a'].Close())
	release()
	requireText(t, "at a", first)
	requireText(t, "at a", second)
	require.Eventually(t, func() bool {
		text, err := a.books(other)
		return err == nil && text == "at b"
	}, natstest.Timeout, 50*time.Millisecond)
	require.EqualValues(t, 2, s.runs.Load())
}
