package callstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/callstore"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/internal/test/attack"
)

// write writes any value as the record of a call, and returns its revision.
func (r *replica) write(key []byte, value string) (revision uint64) {
	r.t.Helper()
	revision, err := r.kv.Put(r.t.Context(), nameOf(key), []byte(value))
	require.NoError(r.t, err)
	return revision
}

// stored returns the value of a call's record.
func (r *replica) stored(key []byte) string {
	r.t.Helper()
	e, err := r.records.Read(r.t.Context(), nameOf(key))
	require.NoError(r.t, err)
	return string(e.Value)
}

func TestAttackDurable_BadRecord(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, release := bookingtest.Holds("at a")
		a := s.replica("a", f)
		first := bookingtest.Key()
		out := s.begins(a, first, 1)
		runs := a.stored(first)
		release()
		bookingtest.RequireText(t, "at a", out)
		for name, value := range map[string]string{
			"nothing":         "",
			"no record":       "\x00\xff",
			"another record":  `{"name":"orders"}`,
			"another state":   changed(t, runs, "state", "stunned"),
			"no run":          changed(t, runs, "run", ""),
			"no lease":        changed(t, runs, "lease", -1),
			"much of it":      strings.Repeat("[", 500_000),
			"a later version": changed(t, changed(t, runs, "v", 2), "state", 7),
		} {
			key := bookingtest.Key()
			revision := a.write(key, value)
			_, err := a.books(key)
			bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, err)
			require.ErrorContains(t, err, "the call may have run: what the cluster remembers of it", name)
			require.Equal(t, revision, a.revision(key), "the record is unchanged")
			require.Equal(t, value, a.stored(key), name)
		}
		require.EqualValues(t, 1, s.Runs.Load(), "the first call")
	})
}

// changed returns a record with another value of a field that it has.
func changed(t *testing.T, record, field string, value any) string {
	t.Helper()
	head, rest, _ := strings.Cut(record, "\n")
	fields := make(map[string]any)
	require.NoError(t, json.Unmarshal([]byte(head), &fields))
	require.Contains(t, fields, field)
	fields[field] = value
	b, err := json.Marshal(fields)
	require.NoError(t, err)
	return string(b) + "\n" + rest
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
		a := s.replicaFor("a", bookingtest.Answers("at a"), opts, alice, remembers(40, 64<<20), func(c *callstore.Config) { c.Plan.Share = 0.25 })
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
		b.awaitWatches(1)
		for range cap(out) - 100 { // without those that wait at this node
			err := <-out
			bookingtest.RequireMayHaveRun(t, asterisque.ErrOverloaded, err)
		}
		attack.Bounded(t, "watches", b.watches(), 1)
		release()
		bookingtest.RequireText(t, "at a", first)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestAttackDurable_WaiterLimit(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		const most = 256
		f, release := bookingtest.Holds("at a")
		a, b := s.replica("a", f), s.replica("b", bookingtest.Answers("at b"))
		var outs []<-chan bookingtest.Outcome
		for i := range int64(most) {
			key := bookingtest.Key()
			outs = append(outs, s.begins(a, key, i+1), s.begins(b, key, i+1))
		}
		b.awaitWatches(most)
		key := bookingtest.Key()
		outs = append(outs, s.begins(a, key, most+1))
		_, err := b.books(key)
		bookingtest.RequireMayHaveRun(t, asterisque.ErrOverloaded, err)
		attack.Bounded(t, "repetitions that wait", b.watches(), most)
		release()
		for _, out := range outs {
			bookingtest.RequireText(t, "at a", out)
		}
		b.awaitWatches(0)
		b.awaitIdle()

		f, release = bookingtest.Holds("at c")
		c := s.replica("c", f)
		key = bookingtest.Key()
		first := s.begins(c, key, most+2)
		second := s.begins(b, key, most+2)
		b.awaitWatches(1) // others can wait again
		release()
		bookingtest.RequireText(t, "at c", first)
		bookingtest.RequireText(t, "at c", second)
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
		b.awaitWatches(1)
		cancel()
		require.ErrorIs(t, <-second, context.Canceled)
		b.awaitWatches(0)
		b.awaitIdle()
		release()
		bookingtest.RequireText(t, "at a", first)
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
		a := s.replica("a", f)
		tried := new(atomic.Int64)
		s.bucket = func(b jetstream.KeyValue) jetstream.KeyValue { return unwatched{b, tried} }
		b := s.replica("b", bookingtest.Answers("at b"), leaseOf(time.Second))
		key := bookingtest.Key()
		first := s.begins(a, key, 1)
		second := s.begins(b, key, 1)
		require.Eventually(t, func() bool { return tried.Load() == 1 }, bookingTime, time.Millisecond)
		release()
		bookingtest.RequireText(t, "at a", first)
		bookingtest.RequireText(t, "at a", second)
	})
}

// unwatched is a bucket that rejects watches, and counts them.
type unwatched struct {
	jetstream.KeyValue
	tried *atomic.Int64
}

// Watch implements jetstream.KeyValue.
func (b unwatched) Watch(context.Context, string, ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	b.tried.Add(1)
	return nil, kv.ErrNotWatched
}
