package callstore_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

func TestDurableRefused_AfterRun(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		s.Within = func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			refusal := c.Refuse(asterisque.ErrOverloaded)
			if err := next(ctx, c); err != nil {
				return err
			}
			return refusal // as of another call, such as one that the interceptor has made
		}
		a := s.replica("a", bookingtest.Answers("at a"))
		s.Within = nil
		key := bookingtest.Key()
		_, err := a.books(key)
		bookingtest.RequireMayHaveRun(t, asterisque.ErrOverloaded, err)
		_, err = s.replica("b", bookingtest.Answers("at b")).books(key)
		bookingtest.RequireMayHaveRun(t, asterisque.ErrOverloaded, err)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestDurableRefused_OnePlace(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		full := 3
		s.Within = func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			if full--; full >= 0 {
				return c.Refuse(asterisque.ErrUnavailable)
			}
			return next(ctx, c)
		}
		a := s.replica("a", bookingtest.Answers("at a"), remembers(2, 64<<20))
		key := bookingtest.Key()
		for range 3 {
			_, err := a.books(key)
			bookingtest.RequireUnused(t, asterisque.ErrUnavailable, err)
		}
		text, err := a.books(key)
		require.NoError(t, err)
		require.Equal(t, "at a", text)
	})
}
