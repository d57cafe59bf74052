package callstore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/internal/test/attack"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

// write writes any value as the record of a call.
func (r *replica) write(key []byte, value string) {
	r.t.Helper()
	_, err := r.kv.Put(r.t.Context(), r.callOf("", key, 0, nil).name, []byte(value))
	require.NoError(r.t, err)
}

func TestAttackDurable_BadRecord(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		a := s.replica("a", bookingtest.Answers("at a"))
		runs := a.newRun(call{function: bookingtest.Book.Number()}).record
		nothing, forever := *runs, *runs
		nothing.Run = ""
		forever.Lease = -1
		for name, value := range map[string]string{
			"nothing":         "",
			"no record":       "\x00\xff",
			"another record":  `{"name":"orders"}`,
			"another state":   strings.Replace(encoded(t, runs), "running", "stunned", 1),
			"no run":          encoded(t, &nothing),
			"no lease":        encoded(t, &forever),
			"much of it":      strings.Repeat("[", 500_000),
			"a later version": strings.Replace(encoded(t, runs), `"v":1`, `"v":2,"state":7`, 1),
		} {
			key := bookingtest.Key()
			a.write(key, value)
			_, err := a.books(key)
			bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, err)
			require.ErrorContains(t, err, "the call may have run: what the cluster remembers of it", name)
			e, err := a.bucket.read(t.Context(), a.callOf("", key, 0, nil).name)
			require.NoError(t, err)
			require.NotNil(t, e.unread, "the record is unchanged")
		}
		require.Zero(t, s.Runs.Load())
	})
}

func encoded(t *testing.T, r *record) string {
	t.Helper()
	b, err := r.encode()
	require.NoError(t, err)
	return string(b)
}

func TestAttackDurable_LongLease(t *testing.T) {
	t.Parallel()
	r := record{Lease: (365 * 24 * time.Hour).Milliseconds()}
	require.Equal(t, LongestLease, r.lease())
	r.Lease = 1 << 62
	require.Equal(t, LongestLease, r.lease())
}

func TestAttackDurable_KeysFillBucket(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		const most = 100
		s := newBookings(t)
		a := s.replica("a", bookingtest.Answers("at a"), remembers(most, 64<<20))
		refused := 0
		for i := range 3 * most {
			_, err := a.books([]byte(fmt.Sprintf("key %012d", i)))
			if err != nil {
				bookingtest.RequireUnused(t, asterisque.ErrOverloaded, err)
				refused++
			}
		}
		require.Equal(t, 2*most, refused)
		status, err := a.kv.Status(t.Context())
		require.NoError(t, err)
		attack.Bounded(t, "records in the bucket", int(status.Values()), most)
		text, err := a.books([]byte(fmt.Sprintf("key %012d", 0)))
		require.NoError(t, err, "records stay in spite of other calls")
		require.Equal(t, "at a", text)
	})
}

func TestAttackDurable_KeysOfOneCaller(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		opts, alice := bySubject("alice")
		_, bob := bySubject("bob")
		a := s.replicaFor("a", bookingtest.Answers("at a"), opts, alice, remembers(40, 64<<20), func(c *Config) { c.Plan.Share = 0.25 })
		let := 0
		for i := range 40 {
			if _, err := a.books([]byte(fmt.Sprint(i))); err != nil {
				bookingtest.RequireUnused(t, asterisque.ErrOverloaded, err)
			} else {
				let++
			}
		}
		attack.Bounded(t, "calls of one caller that are remembered", let, 10)
		text, err := a.books([]byte("0"))
		require.NoError(t, err, "which is remembered")
		require.Equal(t, "at a", text)
		a.session = a.dialled(bob...)
		_, err = a.books([]byte("0"))
		require.NoError(t, err)
	})
}

func TestDurableShare_Expires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShares(Plan{Share: 0.5, Calls: 4, Bytes: 1000, Remember: time.Hour})
		require.NoError(t, s.check("a"))
		s.take("a", 2, 100)
		require.ErrorIs(t, s.check("a"), asterisque.ErrOverloaded)
		require.NoError(t, s.check("b"))
		s.take("b", 1, 500)
		require.ErrorIs(t, s.check("b"), asterisque.ErrOverloaded, "by its bytes")
		fakeclock.Sleep(time.Hour)
		require.ErrorIs(t, s.check("a"), asterisque.ErrOverloaded, "the last ones are there yet")
		fakeclock.Sleep(time.Hour)
		require.NoError(t, s.check("a"))
		require.Empty(t, s.before)
	})
}

func TestAttackDurable_KeysAreForgotten(t *testing.T) {
	t.Parallel()
	s := newFirstSeen(3)
	first := s.since("a", 1)
	require.Equal(t, first, s.since("a", 1))
	require.NotEqual(t, first, s.since("a", 2), "it is another entry")
	for i := range 1000 {
		s.since(fmt.Sprint(i), 1)
	}
	attack.Bounded(t, "entries that are remembered", len(s.byName), 3)
	require.Equal(t, 3, s.order.Len())
}

func TestAttackDurable_RepetitionsShareOneWatch(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, release := bookingtest.Holds("at a")
		a, b := s.replica("a", f), s.replica("b", bookingtest.Answers("at b"))
		key := bookingtest.Key()
		first := s.begins(a, key, 1)
		out := make(chan error, 1000)
		for range cap(out) {
			go func() { // ends with the call
				_, err := b.books(key)
				out <- err
			}()
		}
		b.awaitWaiters(1)
		for range cap(out) - 100 { // without those that wait at this node
			err := <-out
			bookingtest.RequireMayHaveRun(t, asterisque.ErrOverloaded, err)
		}
		attack.Bounded(t, "watches", b.watches(), 1)
		release()
		requireText(t, "at a", first)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

// watches returns the number of watches of the bucket.
func (r *replica) watches() int {
	s, err := r.js.Stream(r.t.Context(), r.bucket.Stream())
	require.NoError(r.t, err)
	return s.CachedInfo().State.Consumers
}

func TestAttackDurable_WaiterLimit(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, release := bookingtest.Holds("at a")
		defer release()
		a, b := s.replica("a", f), s.replica("b", bookingtest.Answers("at b"))
		b.waiters = make(chan struct{}, 2)
		for i := range int64(3) {
			key := bookingtest.Key()
			s.begins(a, key, i+1)
			if i < 2 {
				s.begins(b, key, i+1)
				b.awaitWaiters(int(i) + 1)
				continue
			}
			_, err := b.books(key)
			bookingtest.RequireMayHaveRun(t, asterisque.ErrOverloaded, err)
		}
	})
}

func TestAttackDurable_CallerTimeout(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, release := bookingtest.Holds("at a")
		a, b := s.replica("a", f), s.replica("b", bookingtest.Answers("at b"))
		key := bookingtest.Key()
		first := s.begins(a, key, 1)
		ctx, cancel := context.WithCancel(t.Context())
		second := make(chan error, 1)
		go func() { // ends with the call
			_, err := bookingtest.Book.Call(ctx, b.session, 1, asterisque.WithIdempotencyKey(key))
			second <- err
		}()
		b.awaitWaiters(1)
		cancel()
		require.ErrorIs(t, <-second, context.Canceled)
		b.awaitWaiters(0)
		require.Eventually(t, func() bool { return b.watches() == 0 }, natstest.Timeout, 10*time.Millisecond)
		release()
		requireText(t, "at a", first)
		text, err := b.books(key)
		require.NoError(t, err, "that it was given up is not the answer")
		require.Equal(t, "at a", text)
	})
}

func TestDurable_WithoutWatch(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, release := bookingtest.Holds("at a")
		a, b := s.replica("a", f), s.replica("b", bookingtest.Answers("at b"), leaseOf(time.Second))
		b.keepIn(unwatched{b.bucket.Bucket()})
		key := bookingtest.Key()
		first := s.begins(a, key, 1)
		second := s.begins(b, key, 1)
		b.awaitWaiters(1)
		release()
		requireText(t, "at a", first)
		requireText(t, "at a", second)
	})
}

// unwatched is a bucket that rejects watches.
type unwatched struct{ jetstream.KeyValue }

func (unwatched) Watch(context.Context, string, ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	return nil, kv.ErrNotWatched
}
