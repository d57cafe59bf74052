package callstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/callstore"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// inFiles makes a bucket survive its server.
func inFiles(c *callstore.Config) { c.Storage = jetstream.FileStorage }

// newLastingBookings returns bookings with a server that can be restarted, and the configuration
// for the restart.
func newLastingBookings(t testing.TB) (*bookings, broker.Config) {
	dir := t.TempDir()
	b := natstest.StartServer(t, broker.Config{Dir: dir})
	return &bookings{t: t, b: b}, natstest.Restarted(b, dir)
}

func TestDurable_WithoutJetStream(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s, again := newLastingBookings(t)
		a := s.replica("a", bookingtest.Answers("at a"), inFiles)
		require.NoError(t, s.b.Close())
		key := bookingtest.Key()
		_, err := a.books(key)
		bookingtest.RequireUnused(t, asterisque.ErrUnavailable, err)
		require.Zero(t, s.Runs.Load())
		natstest.StartServer(t, again)
		require.Eventually(t, func() bool {
			text, err := a.books(key)
			return err == nil && text == "at a"
		}, natstest.Timeout, 10*time.Millisecond)
	})
}

func TestDurable_OutageDuringCall(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s, again := newLastingBookings(t)
		f, release := bookingtest.Holds("at a")
		a, b := s.replica("a", f, inFiles), s.replica("b", bookingtest.Answers("at b"), inFiles)
		key := bookingtest.Key()
		first := s.begins(a, key, 1)
		require.NoError(t, s.b.Close())
		release() // its answer waits for JetStream
		natstest.StartServer(t, again)
		bookingtest.RequireText(t, "at a", first)
		require.Eventually(t, func() bool {
			text, err := b.books(key)
			return err == nil && text == "at a"
		}, natstest.Timeout, 10*time.Millisecond)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestDurable_OutageAfterCall(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, release := bookingtest.Holds("at a")
		a := s.replica("a", f, leaseOf(time.Second))
		key := bookingtest.Key()
		first := s.begins(a, key, 1)
		require.NoError(t, s.b.Close())
		release()
		bookingtest.RequireText(t, "at a", first)
		text, err := a.books(key)
		require.NoError(t, err, "the node itself remembers")
		require.Equal(t, "at a", text)
	})
}

func TestDurableClaim_LostAnswer(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		a := s.replica("a", bookingtest.Answers("at a"))
		a.kv.Fail(nil, natstest.ErrLostAnswer) // of the claim, and of the outcome
		key := bookingtest.Key()
		text, err := a.books(key)
		require.NoError(t, err)
		require.Equal(t, "at a", text)
		require.Equal(t, "answered", a.state(key))
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestDurableClaim_TakenBack(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		a, b := s.replica("a", bookingtest.Answers("at a")), s.replica("b", bookingtest.Answers("at b"))
		key := bookingtest.Key()
		ctx, cancel := context.WithTimeout(t.Context(), natstest.Timeout)
		defer cancel()
		a.kv.Fail(nil, natstest.ErrLostAnswer)
		a.kv.Once(cancel)
		_, err := bookingtest.Book.Call(ctx, a.session, 1, asterisque.WithIdempotencyKey(key))
		require.Error(t, err)
		text, err := b.books(key)
		require.NoError(t, err, "long before the lease is over")
		// a may have been faster than its caller
		require.Contains(t, []string{"at a", "at b"}, text)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestDurable_BucketGone(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, release := bookingtest.Holds("at a")
		a, b := s.replica("a", f), s.replica("b", bookingtest.Answers("at b"))
		key := bookingtest.Key()
		first := s.begins(a, key, 1)
		require.NoError(t, a.js.DeleteKeyValue(t.Context(), bucketName))
		require.Eventually(t, func() bool {
			_, err := b.books(bookingtest.Key())
			return err == nil
		}, natstest.Timeout, 10*time.Millisecond)
		release()
		bookingtest.RequireText(t, "at a", first)
		text, err := b.books(key)
		require.NoError(t, err, "the outcome is put into the new one")
		require.Equal(t, "at a", text)
	})
}
