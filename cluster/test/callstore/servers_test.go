package callstore_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/callstore"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

func TestDurable_ServerLost(t *testing.T) {
	t.Parallel()
	all, urls := natstest.ThreeServers(t)
	s := &bookings{t: t, b: all[0], urls: urls}
	kept := func(c *callstore.Config) {
		c.Replicas, c.Plan.Calls, c.Storage = 3, 2, jetstream.FileStorage
	}
	f, release := bookingtest.Holds("at a")
	a, b := s.replica("a", f, kept), s.replica("b", bookingtest.Answers("at b"), kept)
	key, other := bookingtest.Key(), bookingtest.Key()
	first := s.begins(a, key, 1)
	second := s.begins(b, key, 1)
	b.awaitWatches(1)
	_, err := b.books(other)
	require.NoError(t, err)
	_, err = b.books(bookingtest.Key())
	bookingtest.RequireUnused(t, asterisque.ErrOverloaded, err)

	stream, err := a.js.Stream(t.Context(), a.records.Stream())
	require.NoError(t, err)
	leader := stream.CachedInfo().Cluster.Leader
	require.NoError(t, all[leader[0]-'a'].Close())
	release()
	bookingtest.RequireText(t, "at a", first)
	bookingtest.RequireText(t, "at a", second)
	require.Eventually(t, func() bool {
		text, err := a.books(other)
		return err == nil && text == "at b"
	}, natstest.Timeout, 50*time.Millisecond)
	require.EqualValues(t, 2, s.Runs.Load())
}
