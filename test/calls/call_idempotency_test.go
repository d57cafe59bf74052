package calls

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// sixteen is an idempotency key that a caller without a proof of identity may use.
var sixteen = []byte("sixteen bytes...")

// Calls with one key run once, wherever they are made.
func TestIdempotency_RunsOnce(t *testing.T) {
	l := testkit.NewLedger(func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	conn, _ := testkit.Lasting(t, l.Svc)
	other, _ := testkit.Lasting(t, l.Svc)
	_, accepted := testkit.Connect(t, l.Svc)
	require.NotNil(t, accepted)
	for range 3 {
		for _, on := range []asterisque.Caller{conn, conn.Session()} {
			got, err := testkit.Work.Call(testkit.Background, on, 7, asterisque.WithIdempotencyKey(sixteen))
			require.NoError(t, err)
			require.Equal(t, 14, got)
		}
	}
	require.Equal(t, []int{7}, l.List())
	_, err := testkit.Work.Call(testkit.Background, conn, 8, asterisque.WithIdempotencyKey(sixteen))
	require.ErrorIs(t, err, asterisque.ErrBadParams, "it is the key of another call")
	_, err = testkit.Work.Call(testkit.Background, other, 8, asterisque.WithIdempotencyKey(sixteen))
	require.NoError(t, err, "another node remembers for itself")
}

// An idempotency key that cannot be sent is refused locally.
func TestIdempotency_InvalidKey(t *testing.T) {
	svc := testkit.EchoService()
	dialled, _ := testkit.Connect(t, svc)
	for _, n := range []int{0, 65} {
		_, err := testkit.Echo.Call(testkit.Background, dialled, "a", asterisque.WithIdempotencyKey(make([]byte, n)))
		require.ErrorIs(t, err, asterisque.ErrBadParams)
		require.ErrorContains(t, err, "it has 1 to 64")
		require.True(t, asterisque.Repeatable(err))
	}
	_, err := dialled.Open(testkit.Background, 1, nil, asterisque.WithIdempotencyKey(sixteen))
	require.ErrorIs(t, err, asterisque.ErrBadParams)
	require.ErrorContains(t, err, "a stream cannot be repeated")
}

// Interceptors see the idempotency key and its owner.
func TestIdempotency_Interceptors(t *testing.T) {
	type seen struct {
		key, owner string
		durable    bool
	}
	var made, served seen
	note := func(to *seen) asterisque.Interceptor {
		return func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			*to = seen{string(c.IdempotencyKey()), c.Owner(), c.Durable()}
			return next(ctx, c)
		}
	}
	there := asterisque.NewNode(asterisque.WithService(testkit.EchoService()), asterisque.WithInboundInterceptors(note(&served)),
		asterisque.WithAccess(asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
			return &asterisque.Grant{Subject: "anna"}, nil
		}}))
	here := asterisque.NewNode(asterisque.WithOutboundInterceptors(note(&made)))
	t.Cleanup(func() { here.Close(); there.Close() })
	s, err := here.Dial(testkit.Background, testkit.Serve(t, there))
	require.NoError(t, err)
	_, err = testkit.Echo.Call(testkit.Background, s, "a", asterisque.WithIdempotencyKey([]byte("k")))
	require.NoError(t, err)
	require.Equal(t, seen{"k", "", true}, made)
	require.Equal(t, seen{"k", "subject anna", true}, served)
	_, err = testkit.Echo.Call(testkit.Background, s, "a")
	require.NoError(t, err)
	require.Equal(t, seen{}, made)
	require.Equal(t, seen{"", "subject anna", false}, served)
}

// An interceptor may give a call a key.
func TestIdempotency_InterceptorKey(t *testing.T) {
	var ran atomic.Int64
	svc := asterisque.NewService()
	testkit.Echo.Handle(svc, func(_ context.Context, text string) (string, error) { ran.Add(1); return text, nil })
	keys := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		if !c.Durable() {
			require.NoError(t, c.SetIdempotencyKey(sixteen))
		}
		require.Error(t, c.SetIdempotencyKey([]byte(strings.Repeat("x", 65))))
		return next(ctx, c)
	}
	refuses := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		require.Error(t, c.SetIdempotencyKey(sixteen), "it has come with it")
		return next(ctx, c)
	}
	conn, _ := testkit.Lasting(t, svc, asterisque.WithInboundInterceptors(refuses))
	for range 3 {
		_, err := testkit.Echo.Call(testkit.Background, conn, "a", asterisque.WithCallInterceptors(keys))
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, ran.Load())
	_, err := conn.Open(testkit.Background, testkit.Echo.Number(), nil, asterisque.WithCallInterceptors(
		func(_ context.Context, c *asterisque.Call, _ asterisque.Next) error {
			return c.SetIdempotencyKey(sixteen)
		}))
	require.ErrorContains(t, err, "it carries Blocks")
}

// TestDurable_RefusalIsNoEnd requires that a durable call is retried while the second node refuses
// it, because its caller does not know whether the first attempt has run.
func TestDurable_RefusalIsNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testkit.NewLedger(func(ctx context.Context, n int) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		conn, wires, _, first := testkit.Link(t, l.Svc, asterisque.ReconnectConfig{First: time.Millisecond})
		var refused atomic.Int64
		second := asterisque.NewNode(asterisque.WithService(testkit.NewLedger(func(_ context.Context, n int) (int, error) { return 3 * n, nil }).Svc),
			asterisque.WithInboundInterceptors(func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
				if refused.Add(1) <= 5 {
					return c.Refuse(asterisque.ErrUnavailable.Withf("where answers are kept is away"))
				}
				return next(ctx, c)
			}))
		defer second.Close()
		answer := make(chan error, 1)
		go func() { // ends with its call
			got, err := testkit.Work.Call(testkit.Background, conn, 7, asterisque.WithDurable())
			if err == nil {
				require.Equal(t, 21, got)
			}
			answer <- err
		}()
		synctest.Wait()
		require.Equal(t, []int{7}, l.List())
		wires.LeadTo(second)
		wires.Cut()
		require.NoError(t, <-answer)
		require.EqualValues(t, 6, refused.Load())

		refused.Store(0)
		_, err := testkit.Work.Call(testkit.Background, conn, 8, asterisque.WithDurable())
		require.ErrorContains(t, err, "away", "one that has not run is refused at once")
		require.True(t, asterisque.Repeatable(err))
		first.Close()
	})
}
