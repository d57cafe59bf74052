package lease

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
)

// newClaims returns claims without NATS, and with a time to live beyond the test.
func newClaims(t *testing.T) *Claims {
	t.Helper()
	c := &Claims{held: make(map[string]*Claim), busy: make(map[string]chan struct{})}
	c.ctx, c.end = context.WithCancelCause(context.Background())
	c.cfg = Config{TTL: time.Hour, Lost: func(l Lost) error { return fmt.Errorf("%w: %w", ErrLost, l.Cause) }, Logger: slog.New(slog.DiscardHandler), Now: time.Now}
	t.Cleanup(func() {
		c.end(ErrReleased)
		c.running.Wait()
	})
	return c
}

// holdWritten makes a claim of an entry that another test would write.
func (c *Claims) holdWritten(t *testing.T, key string) *Claim {
	t.Helper()
	claim, ok := c.hold(key, 7, 1, time.Now())
	require.True(t, ok)
	return claim
}

func TestClaims_Limit(t *testing.T) {
	t.Parallel()
	c := newClaims(t)
	last := c.holdWritten(t, "last")
	for i := range maxClaims - 1 {
		c.busy[fmt.Sprint("busy", i)] = nil
	}
	_, err := c.Claim(t.Context(), "more")
	require.ErrorIs(t, err, asterisque.ErrOverloaded)
	require.ErrorContains(t, err, "65536")
	last.end(ErrReleased)
	<-last.stopped
	done, err := c.reserve(t.Context(), "more")
	require.NoError(t, err)
	done()
}

func TestClaims_LifeEnds(t *testing.T) {
	t.Parallel()
	c := newClaims(t)
	claim := c.holdWritten(t, "k")
	c.end(context.Canceled)
	<-claim.Done()
	require.ErrorIs(t, claim.Err(), ErrLost)
	require.ErrorIs(t, claim.Err(), context.Canceled)
	require.ErrorIs(t, claim.Release(t.Context()), ErrLost)
	require.NoError(t, c.Close(t.Context()))
}

// The monotonic clock stops while a machine is suspended, and the wall clock may be set.
func TestClaims_Since(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	for name, test := range map[string]struct {
		now  time.Time
		want time.Duration
	}{
		"running":                {begin.Add(time.Minute), time.Minute},
		"suspended for an hour":  {begin.Add(time.Hour).Round(0), time.Hour},
		"wall clock an hour ago": {begin.Add(-time.Hour).Round(0), -time.Hour},
	} {
		c := &Claims{cfg: Config{Now: func() time.Time { return test.now }}}
		require.Equal(t, test.want, c.since(begin), name)
	}
}
