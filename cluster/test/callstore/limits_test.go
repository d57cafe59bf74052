package callstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/callstore"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// remembers limits the records of replicas.
func remembers(calls, bytes int64) func(*callstore.Config) {
	return func(c *callstore.Config) { c.Plan.Calls, c.Plan.Bytes = calls, bytes }
}

func TestDurableFull_ByCalls(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		a, b := s.replica("a", bookingtest.Answers("at a"), remembers(3, 64<<20)), s.replica("b", bookingtest.Answers("at b"), remembers(3, 64<<20))
		var keys [][]byte
		for range 3 {
			keys = append(keys, bookingtest.Key())
			_, err := a.books(keys[len(keys)-1])
			require.NoError(t, err)
		}
		_, err := b.books(bookingtest.Key())
		bookingtest.RequireUnused(t, asterisque.ErrOverloaded, err)
		for _, key := range keys {
			text, err := b.books(key)
			require.NoError(t, err, "which are there")
			require.Equal(t, "at a", text)
		}
		require.EqualValues(t, 3, s.Runs.Load())
	})
}

func TestDurableFull_Answer(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, release := bookingtest.Holds("at a")
		a, b := s.replica("a", f, remembers(1, 64<<20)), s.replica("b", bookingtest.Answers("at b"), remembers(1, 64<<20))
		key := bookingtest.Key()
		first := s.begins(a, key, 1)
		_, err := b.books(bookingtest.Key())
		bookingtest.RequireUnused(t, asterisque.ErrOverloaded, err)
		release()
		bookingtest.RequireText(t, "at a", first)
		text, err := b.books(key)
		require.NoError(t, err)
		require.Equal(t, "at a", text)
	})
}

func TestDurableFull_ByBytes(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		large := strings.Repeat("x", 600<<10)
		keys := [][]byte{bookingtest.Key(), bookingtest.Key(), bookingtest.Key()}
		var outs []<-chan bookingtest.Outcome
		var releases []func()
		for i, key := range keys { // all begin while the bucket has room
			f, release := bookingtest.Holds(large)
			a := s.replica(fmt.Sprint("a", i), f, remembers(1<<16, 1<<20))
			outs, releases = append(outs, s.begins(a, key, int64(i+1))), append(releases, release)
		}
		for i, release := range releases {
			release()
			bookingtest.RequireText(t, large, outs[i])
		}
		b := s.replica("b", bookingtest.Answers("at b"), remembers(1<<16, 1<<20))
		_, err := b.books(bookingtest.Key())
		bookingtest.RequireUnused(t, asterisque.ErrOverloaded, err)
		for _, key := range keys[:2] {
			text, err := b.books(key)
			require.NoError(t, err)
			require.Len(t, text, len(large))
		}
		_, err = b.books(keys[2])
		bookingtest.RequireMayHaveRun(t, asterisque.ErrOverloaded, err)
	})
}

func TestDurable_AnswerTooLarge(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		a, b := s.replica("a", bookingtest.Answers(strings.Repeat("x", 1<<20))), s.replica("b", bookingtest.Answers("at b"))
		key := bookingtest.Key()
		text, err := a.books(key)
		require.NoError(t, err)
		require.Len(t, text, 1<<20)
		_, err = b.books(key)
		bookingtest.RequireMayHaveRun(t, asterisque.ErrOverloaded, err)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestOpen_OtherLimits(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		s.replica("a", bookingtest.Answers("at a"))
		for what, change := range map[string]func(*callstore.Config){
			"time to live":      func(c *callstore.Config) { c.Plan.Remember *= 2 },
			"number of entries": func(c *callstore.Config) { c.Plan.Calls = 5 },
			"number of bytes":   func(c *callstore.Config) { c.Plan.Bytes = 2 << 20 },
			"storage":           func(c *callstore.Config) { c.Storage = jetstream.FileStorage },
		} {
			err := callstore.New(s.config("b", change)).Open(t.Context(), s.links(t.Context()))
			var other *kv.LimitError
			require.ErrorAs(t, err, &other, what)
			require.Equal(t, []string{"calls_orders", what}, []string{other.Bucket, other.What})
		}
	})
}

func TestOpen_DiscardOld(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		a := s.replica("a", bookingtest.Answers("at a"))
		stream, err := a.js.Stream(t.Context(), a.records.Stream())
		require.NoError(t, err)
		cfg := stream.CachedInfo().Config
		cfg.Discard = jetstream.DiscardOld
		_, err = a.js.UpdateStream(t.Context(), cfg)
		require.NoError(t, err)
		require.ErrorContains(t, callstore.New(s.config("b")).Open(t.Context(), s.links(t.Context())), "policy of discarding")
	})
}

func TestOpen_OtherCluster(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		s.replica("a", bookingtest.Answers("at a"))
		other := callstore.New(s.config("b", func(c *callstore.Config) { c.Cluster = "test" }))
		require.ErrorIs(t, other.Open(t.Context(), s.links(t.Context())), kv.ErrOtherCluster)
	})
}

// laggard is JetStream on a server that lags behind: for a while it does not know of buckets that
// other nodes have created.
type laggard struct {
	jetstream.JetStream
	asked atomic.Int64
}

func (l *laggard) KeyValue(ctx context.Context, bucket string) (jetstream.KeyValue, error) {
	if l.asked.Add(1) <= 3 {
		return nil, jetstream.ErrBucketNotFound
	}
	return l.JetStream.KeyValue(ctx, bucket)
}

func TestOpen_JustCreated(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		s.replica("a", bookingtest.Answers("at a"))
		links := s.links(t.Context())
		js := &laggard{JetStream: links.JetStream}
		links.JetStream = js
		require.NoError(t, callstore.New(s.config("b")).Open(t.Context(), links))
		require.EqualValues(t, 4, js.asked.Load())
	})
}
