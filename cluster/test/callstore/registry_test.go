package callstore_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/codec"
)

func TestDurable_OtherReplica(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		a, b, c := s.replica("a", bookingtest.Answers("at a")), s.replica("b", bookingtest.Answers("at b")), s.replica("c", bookingtest.Answers("at c"))
		key := bookingtest.Key()
		for _, r := range []*replica{a, b, c, b, a} {
			text, err := r.books(key)
			require.NoError(t, err)
			require.Equal(t, "at a", text)
		}
		require.EqualValues(t, 1, s.Runs.Load())
		text, err := b.books(bookingtest.Key())
		require.NoError(t, err)
		require.Equal(t, "at b", text, "another key is another call")
	})
}

func TestDurable_SameError(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		sold := &asterisque.Abort{Code: 1000, Message: "sold out", Detail: []byte("\nrow 7\n")}
		a := s.replica("a", func(context.Context, int) (string, error) { return "", sold })
		b := s.replica("b", bookingtest.Answers("at b"))
		key := bookingtest.Key()
		for _, r := range []*replica{a, b} {
			_, err := r.books(key)
			var got *asterisque.Abort
			require.ErrorAs(t, err, &got)
			require.Equal(t, []any{sold.Code, sold.Message, sold.Detail}, []any{got.Code, got.Message, got.Detail})
			require.False(t, asterisque.Repeatable(err))
		}
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestDurable_RepetitionWaits(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, release := bookingtest.Holds("at a")
		a, b, c := s.replica("a", f), s.replica("b", bookingtest.Answers("at b")), s.replica("c", bookingtest.Answers("at c"))
		key := bookingtest.Key()
		first := s.begins(a, key, 1)
		second, third := s.begins(b, key, 1), s.begins(c, key, 1)
		b.awaitWatches(2)
		release()
		for _, out := range []<-chan bookingtest.Outcome{first, second, third} {
			bookingtest.RequireText(t, "at a", out)
		}
		require.EqualValues(t, 1, s.Runs.Load())
		b.awaitWatches(0)
		b.awaitIdle()
	})
}

func TestDurable_KeyReused(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		a, b := s.replica("a", bookingtest.Answers("at a")), s.replica("b", bookingtest.Answers("at b"))
		key := bookingtest.Key()
		_, err := a.books(key)
		require.NoError(t, err)
		_, err = bookingtest.Rebook.Call(t.Context(), b.session, 1, asterisque.WithIdempotencyKey(key))
		bookingtest.RequireUnused(t, asterisque.ErrBadParams, err)
		_, err = bookingtest.Book.Call(t.Context(), b.session, 2, asterisque.WithIdempotencyKey(key))
		bookingtest.RequireUnused(t, asterisque.ErrBadParams, err)
		text, err := b.books(key)
		require.NoError(t, err, "which the refused ones have not used up")
		require.Equal(t, "at a", text)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

// TestDurable_SameBytesInAnotherCodec repeats a call of 1 in JSON by the same byte in CBOR, which
// is -18 there.
func TestDurable_SameBytesInAnotherCodec(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		a, b := s.replica("a", bookingtest.Answers("at a")), s.replica("b", bookingtest.Answers("at b"))
		for _, f := range []uint16{bookingtest.Book.Number(), bookingtest.Rebook.Number()} {
			key := bookingtest.Key()
			in := func(r *replica, values codec.Values) (string, error) {
				got, err := r.dialled(asterisque.WithCodecs(values)).Call(t.Context(), f, []byte("1"), asterisque.WithIdempotencyKey(key))
				return string(got), err
			}
			text, err := in(a, codec.JSON)
			require.NoError(t, err)
			require.Equal(t, `"at a"`, text)
			_, err = in(b, codec.CBOR)
			bookingtest.RequireUnused(t, asterisque.ErrBadParams, err)
			text, err = in(b, codec.JSON)
			require.NoError(t, err)
			require.Equal(t, `"at a"`, text)
		}
		require.EqualValues(t, 2, s.Runs.Load())
	})
}

func TestDurable_InterceptorRefuses(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		s.Within = func(_ context.Context, c *asterisque.Call, _ asterisque.Next) error {
			return c.Refuse(asterisque.ErrOverloaded)
		}
		a := s.replica("a", bookingtest.Answers("at a"))
		s.Within = nil
		key := bookingtest.Key()
		_, err := a.books(key)
		bookingtest.RequireUnused(t, asterisque.ErrOverloaded, err)
		text, err := s.replica("b", bookingtest.Answers("at b")).books(key)
		require.NoError(t, err)
		require.Equal(t, "at b", text)
	})
}

func TestDurable_KeysPerSubject(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		opts, asAlice := bySubject("alice")
		_, asBob := bySubject("bob")
		alice := s.replicaFor("a", bookingtest.Answers("at a"), opts, asAlice)
		bob := s.replicaFor("b", bookingtest.Answers("at b"), opts, asBob)
		text, err := alice.books([]byte("order 1"))
		require.NoError(t, err)
		require.Equal(t, "at a", text)
		text, err = bob.books([]byte("order 1"))
		require.NoError(t, err)
		require.Equal(t, "at b", text)
		bob.session = bob.dialled(asAlice...)
		text, err = bob.books([]byte("order 1"))
		require.NoError(t, err)
		require.Equal(t, "at a", text)
	})
}

func TestDurable_OtherCallsAreFree(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		a := s.replica("a", bookingtest.Answers("at a"))
		_, err := bookingtest.Book.Call(t.Context(), a.session, 1)
		require.NoError(t, err)
		status, err := a.kv.Status(t.Context())
		require.NoError(t, err)
		require.Zero(t, status.Values())
	})
}
