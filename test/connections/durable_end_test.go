package connections

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// TestDurable_Canceled ends the session of a durable call and the call's context, in both orders
// and at once. The call would have outlived the session: it ends with its context.
func TestDurable_Canceled(t *testing.T) {
	ends := map[string]struct {
		wait   bool // between the ends
		cancel bool // first
	}{
		"session first":        {wait: true},
		"context first":        {wait: true, cancel: true},
		"session right before": {},
		"context right before": {cancel: true},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				synctest.Test(t, func(t *testing.T) {
					l := testkit.NewLedger(func(ctx context.Context, _ int) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
					conn, _, here, _ := testkit.Link(t, l.Svc, asterisque.ReconnectConfig{First: time.Minute})
					ctx, cancel := context.WithCancel(testkit.Background)
					done := make(chan error, 1)
					go func() { _, err := testkit.Work.Call(ctx, conn, 1, asterisque.WithDurable()); done <- err }()
					synctest.Wait()
					steps := []func(){func() { here.Sessions()[0].Close() }, cancel}
					if end.cancel {
						steps[0], steps[1] = steps[1], steps[0]
					}
					steps[0]()
					if end.wait {
						synctest.Wait()
					}
					steps[1]()
					err := <-done
					require.ErrorIs(t, err, context.Canceled)
					require.False(t, asterisque.Repeatable(err), "it may have run")
				})
			}
		})
	}
}

// TestDurable_Expired has a durable call without a session at its deadline.
func TestDurable_Expired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testkit.NewLedger(func(ctx context.Context, _ int) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
		conn, wires, _, _ := testkit.Link(t, l.Svc, asterisque.ReconnectConfig{First: time.Minute})
		done := make(chan error, 1)
		go func() {
			_, err := testkit.Work.Call(testkit.Background, conn, 1, asterisque.WithDurable(), asterisque.WithTTL(10*time.Second))
			done <- err
		}()
		synctest.Wait()
		wires.Cut()
		err := <-done
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, asterisque.Repeatable(err), "it may have run")
	})
}

// TestDurable_AnsweredAtEnd ends the context and the session of a durable call after its answer has
// arrived: the call has succeeded.
func TestDurable_AnsweredAtEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testkit.NewLedger(func(_ context.Context, n int) (int, error) { return 2 * n, nil })
		var ends func()
		last := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			err := next(ctx, c)
			ends()
			return err
		}
		conn, _, here, _ := testkit.Link(t, l.Svc, asterisque.ReconnectConfig{First: time.Minute}, asterisque.WithOutboundInterceptors(last))
		ctx, cancel := context.WithCancel(testkit.Background)
		ends = func() { cancel(); here.Sessions()[0].Close() }
		n, err := testkit.Work.Call(ctx, conn, 21, asterisque.WithDurable())
		require.NoError(t, err)
		require.Equal(t, 42, n)
	})
}
