package callstore

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/test/natstest"
)

func TestDurableRefused_AfterRun(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		s.within = func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			refusal := c.Refuse(asterisque.ErrOverloaded)
			if err := next(ctx, c); err != nil {
				return err
			}
			return refusal // as of another call, such as one that the interceptor has made
		}
		a := s.replica("a", answers("at a"))
		s.within = nil
		key := aKey()
		_, err := a.books(key)
		requireMayHaveRun(t, asterisque.ErrOverloaded, err)
		_, err = s.replica("b", answers("at b")).books(key)
		requireMayHaveRun(t, asterisque.ErrOverloaded, err)
		require.EqualValues(t, 1, s.runs.Load())
	})
}

func TestDurableRefused_OnePlace(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		full := 3
		s.within = func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			if full--; full >= 0 {
				return c.Refuse(asterisque.ErrUnavailable)
			}
			return next(ctx, c)
		}
		a := s.replica("a", answers("at a"), remembers(2, 64<<20))
		key := aKey()
		for range 3 {
			_, err := a.books(key)
			requireUnused(t, asterisque.ErrUnavailable, err)
		}
		text, err := a.books(key)
		require.NoError(t, err)
		require.Equal(t, "at a", text)
	})
}
