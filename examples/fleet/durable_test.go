package main

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
)

var (
	notRun = with(asterisque.ErrUnavailable, codec.Refused, nil)
	mayRun = with(asterisque.ErrSessionClosed, codec.MaybeRan, nil)
)

// tries makes a durable call with attempts that end with these errors, the last one repeatedly, and
// returns the number of attempts, the lines in the journal, and its error.
func tries(t *testing.T, outcomes ...error) (n int, lines []string, err error) {
	j, err := openJournal(filepath.Join(t.TempDir(), "a.journal"))
	require.NoError(t, err)
	defer j.close()
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(j)
		require.NoError(t, l.call(t.Context(), errand{"a", "replica", "", longPatience}, func(ctx context.Context, call number) error {
			err = l.durably(ctx, call, func(context.Context, asterisque.CallOption) error {
				n++
				return outcomes[min(n, len(outcomes))-1]
			})
			return err
		}))
	})
	lines, failed := j.lines()
	require.NoError(t, failed)
	return n, lines, err
}

// A durable call is retried until it is answered.
func TestDurable_Retried(t *testing.T) {
	n, lines, err := tries(t, notRun, mayRun, notRun, mayRun, nil)
	require.NoError(t, err)
	require.Equal(t, 5, n)
	require.Equal(t, []string{"made a 1", "noted a 1 " + madeAgain, "answered a 1"}, lines)
}

// A durable call with only refused attempts has not run.
func TestDurable_OnlyRefused(t *testing.T) {
	n, lines, err := tries(t, notRun)
	require.True(t, asterisque.Repeatable(err))
	require.Greater(t, n, 5)
	require.Equal(t, []string{"made a 1", "refused a 1 the replica goes away"}, lines)
}

// A durable call may have run if one of its attempts may have.
func TestDurable_MayHaveRun(t *testing.T) {
	_, lines, err := tries(t, notRun, mayRun, notRun)
	require.False(t, asterisque.Repeatable(err))
	require.Equal(t, []string{"made a 1", "noted a 1 " + madeAgain, "failed a 1 the session with the replica was lost"}, lines)
}

// A durable call is given up after its replica was reported lost.
func TestDurable_LostReplica(t *testing.T) {
	n, lines, err := tries(t, mayRun, notRun, saysLost())
	require.False(t, asterisque.Repeatable(err))
	require.Equal(t, 2+mostTold, n)
	require.Equal(t, "failed a 1 the replica that ran it was lost", lines[len(lines)-1])
}

// An attempt of a durable call times out soon.
func TestDurable_AttemptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		require.ErrorIs(t, attempt(t.Context(), asterisque.WithDurable(), func(ctx context.Context, _ asterisque.CallOption) error {
			<-ctx.Done()
			return ctx.Err()
		}), context.DeadlineExceeded)
		require.Equal(t, tryTime, time.Since(begin))
	})
}

func TestNewKey_Unique(t *testing.T) {
	require.Len(t, newKey(), 16)
	require.NotEqual(t, newKey(), newKey())
}
