package wait

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

// stand makes the present part of t look as if the process had not run for d since its start.
func (t *Timer) stand(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since = t.since.Add(-d)
}

func TestTimer_FiresInTime(t *testing.T) {
	for _, d := range []time.Duration{0, 1, 7, 8, time.Millisecond, 5 * time.Second, 999_999_999} {
		synctest.Test(t, func(t *testing.T) {
			begin, fired := time.Now(), make(chan struct{})
			AfterFunc(d, func() { close(fired) })
			<-fired
			require.Equal(t, d, time.Since(begin))
		})
	}
}

func TestTimer_IgnoresStoppedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const d = 8 * time.Second
		begin, fired := time.Now(), make(chan struct{})
		timer := AfterFunc(d, func() { close(fired) })
		for range parts { // at each look, an hour has passed
			timer.stand(time.Hour)
			fakeclock.Sleep(d/parts + 1)
			synctest.Wait()
		}
		select {
		case <-fired:
			t.Fatal("nothing that has come meanwhile could be read")
		default:
		}
		<-fired
		require.InDelta(t, (d + d/parts).Seconds(), time.Since(begin).Seconds(), 0.001)
	})
}

// TestTimer_AlwaysLate has an hour pass before each look.
func TestTimer_AlwaysLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const d = 8 * time.Second
		begin, fired := time.Now(), make(chan struct{})
		timer := AfterFunc(d, func() { close(fired) })
		for range 3 * parts {
			timer.stand(time.Hour)
			fakeclock.Sleep(d/parts + 1)
		}
		<-fired
		require.Less(t, time.Since(begin), 3*d+d/parts)
	})
}

func TestTimer_Stop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timer := AfterFunc(time.Second, func() { t.Error("called") })
		fakeclock.Sleep(time.Second / 2)
		require.True(t, timer.Stop())
		require.False(t, timer.Stop())
		fakeclock.Sleep(time.Hour)
	})
}

func TestWithTimeout_MatchesContext(t *testing.T) {
	cause := errors.New("too slow")
	for name, c := range map[string]struct {
		end        func(cancel, parent context.CancelFunc)
		err, cause error
	}{
		"in time":         {func(_, _ context.CancelFunc) {}, context.DeadlineExceeded, cause},
		"cancelled":       {func(cancel, _ context.CancelFunc) { cancel() }, context.Canceled, context.Canceled},
		"with its parent": {func(_, parent context.CancelFunc) { parent() }, context.Canceled, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, end := context.WithCancel(context.Background())
				defer end()
				ctx, cancel := WithTimeout(parent, time.Second, cause)
				defer cancel()
				until, ok := ctx.Deadline()
				require.True(t, ok)
				require.Equal(t, time.Second, time.Until(until))
				require.NoError(t, ctx.Err())
				child, stop := context.WithCancel(ctx)
				defer stop()
				c.end(cancel, end)
				<-ctx.Done()
				require.Equal(t, c.err, ctx.Err())
				require.Equal(t, c.cause, context.Cause(ctx))
				<-child.Done()
				require.Equal(t, c.cause, context.Cause(child))
				fakeclock.Sleep(time.Hour)
				require.Equal(t, c.err, ctx.Err(), "for ever")
			})
		})
	}
}
