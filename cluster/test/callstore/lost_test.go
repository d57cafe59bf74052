package callstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

func TestDurableLost_Repetition(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, _ := bookingtest.Holds("at a")
		a, b := s.replica("a", f, leaseOf(time.Second)), s.replica("b", bookingtest.Answers("at b"))
		key := bookingtest.Key()
		s.begins(a, key, 1)
		a.vanish()
		for range 2 {
			_, err := b.books(key)
			bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, err)
		}
		require.Equal(t, "lost", b.state(key))
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestDurableLost_Idempotent(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, _ := bookingtest.Holds("at a")
		a, b := s.replica("a", f, leaseOf(time.Second)), s.replica("b", bookingtest.Answers("at b"))
		c := s.replica("c", bookingtest.Answers("at c"))
		key := bookingtest.Key()
		// ends with its node
		go bookingtest.Rebook.Call(t.Context(), a.session, 1, asterisque.WithIdempotencyKey(key))
		require.Eventually(t, func() bool { return s.Runs.Load() == 1 }, natstest.Timeout, time.Millisecond)
		a.vanish()
		for _, r := range []*replica{b, c} {
			text, err := bookingtest.Rebook.Call(t.Context(), r.session, 1, asterisque.WithIdempotencyKey(key))
			require.NoError(t, err)
			require.Equal(t, "at b", text, "it has run there, and once there")
		}
		require.EqualValues(t, 2, s.Runs.Load())
	})
}

func TestDurableLost_AnswerStays(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		a, b := s.replica("a", bookingtest.Answers("at a")), s.replica("b", bookingtest.Answers("at b"))
		key := bookingtest.Key()
		_, err := a.books(key)
		require.NoError(t, err)
		a.vanish()
		text, err := b.books(key)
		require.NoError(t, err)
		require.Equal(t, "at a", text)
	})
}

func TestDurableLost_NodeCloses(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, _ := bookingtest.Holds("at a")
		a, b := s.replica("a", f), s.replica("b", bookingtest.Answers("at b"))
		key := bookingtest.Key()
		s.begins(a, key, 1)
		a.Close()
		_, err := b.books(key)
		bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, err)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestDurable_LongCall(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, release := bookingtest.Holds("at a")
		a, b := s.replica("a", f, leaseOf(time.Second)), s.replica("b", bookingtest.Answers("at b"))
		key := bookingtest.Key()
		first := s.begins(a, key, 1)
		second := s.begins(b, key, 1)
		begun := a.revision(key)
		require.Eventually(t, func() bool { return a.revision(key) > begun+4 }, natstest.Timeout, 10*time.Millisecond)
		release()
		bookingtest.RequireText(t, "at a", first)
		bookingtest.RequireText(t, "at a", second)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

// cutOff makes JetStream appear unreachable to a replica, until the lease of its call has expired
// for another replica, where the call is repeated.
func (s *bookings) cutOff(a, b *replica, key []byte, f asterisque.Function[int, string]) bookingtest.Outcome {
	s.t.Helper()
	a.kv.Fail(natstest.ErrLostAnswer, nil)
	ctx, cancel := context.WithTimeout(s.t.Context(), natstest.Timeout)
	defer cancel()
	text, err := f.Call(ctx, b.session, 1, asterisque.WithIdempotencyKey(key))
	a.kv.Fail(nil, nil)
	return bookingtest.Outcome{Text: text, Err: err}
}

func TestDurableLost_LateAnswer(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, release := bookingtest.Holds("at a")
		a, b, c := s.replica("a", f, leaseOf(time.Second)), s.replica("b", bookingtest.Answers("at b")), s.replica("c", bookingtest.Answers("at c"))
		key := bookingtest.Key()
		first := s.begins(a, key, 1)
		bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, s.cutOff(a, b, key, bookingtest.Book).Err)
		release()
		bookingtest.RequireText(t, "at a", first)
		for _, r := range []*replica{b, c} {
			text, err := r.books(key)
			require.NoError(t, err, "since it was not run again")
			require.Equal(t, "at a", text)
		}
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestDurableLost_WaitsAgain(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, release := bookingtest.Holds("at a")
		a, b := s.replica("a", f, leaseOf(time.Second)), s.replica("b", bookingtest.Answers("at b"))
		key := bookingtest.Key()
		first := s.begins(a, key, 1)
		bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, s.cutOff(a, b, key, bookingtest.Book).Err)
		require.Eventually(t, func() bool { return b.state(key) == "running" }, natstest.Timeout, 10*time.Millisecond)
		b.awaitWatches(0)
		second := s.begins(b, key, 1)
		b.awaitWatches(1)
		release()
		bookingtest.RequireText(t, "at a", first)
		bookingtest.RequireText(t, "at a", second)
	})
}

func TestDurableLost_OtherAnswer(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, release := bookingtest.Holds("at a")
		a, b := s.replica("a", f, leaseOf(time.Second)), s.replica("b", bookingtest.Answers("at b"))
		key := bookingtest.Key()
		first := make(chan bookingtest.Outcome, 1)
		go func() { // ends with the call
			text, err := bookingtest.Rebook.Call(t.Context(), a.session, 1, asterisque.WithIdempotencyKey(key))
			first <- bookingtest.Outcome{Text: text, Err: err}
		}()
		require.Eventually(t, func() bool { return s.Runs.Load() == 1 }, natstest.Timeout, time.Millisecond)
		again := s.cutOff(a, b, key, bookingtest.Rebook)
		require.NoError(t, again.Err)
		require.Equal(t, "at b", again.Text)
		release()
		bookingtest.RequireText(t, "at b", first)
	})
}

func TestDurableLost_OtherRun(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, release := bookingtest.Holds("at a")
		g, releaseOther := bookingtest.Holds("at b")
		a, b := s.replica("a", f, leaseOf(time.Second)), s.replica("b", g)
		key := bookingtest.Key()
		first := make(chan bookingtest.Outcome, 1)
		go func() { // ends with the call
			text, err := bookingtest.Rebook.Call(t.Context(), a.session, 1, asterisque.WithIdempotencyKey(key))
			first <- bookingtest.Outcome{Text: text, Err: err}
		}()
		require.Eventually(t, func() bool { return s.Runs.Load() == 1 }, natstest.Timeout, time.Millisecond)
		a.kv.Fail(natstest.ErrLostAnswer, nil)
		second := make(chan bookingtest.Outcome, 1)
		go func() { // ends with the call
			text, err := bookingtest.Rebook.Call(t.Context(), b.session, 1, asterisque.WithIdempotencyKey(key))
			second <- bookingtest.Outcome{Text: text, Err: err}
		}()
		require.Eventually(t, func() bool { return s.Runs.Load() == 2 }, natstest.Timeout, time.Millisecond)
		a.kv.Fail(nil, nil)
		release()
		bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, (<-first).Err)
		releaseOther()
		bookingtest.RequireText(t, "at b", second)
		text, err := bookingtest.Rebook.Call(t.Context(), a.session, 1, asterisque.WithIdempotencyKey(key))
		require.NoError(t, err, "the node itself has not remembered what it has said then")
		require.Equal(t, "at b", text)
	})
}
