package interceptors

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// TestInterceptor_EarlyReturn uses an interceptor that calls next on another goroutine, and does
// not wait.
func TestInterceptor_EarlyReturn(t *testing.T) {
	svc, h := testkit.HoldService()
	early := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		go next(ctx, c) // the end of the call waits for it
		<-h.Began
		go func() { h.End <- struct{}{} }()
		return nil
	}
	served, accepted := testkit.Connect(t, svc, asterisque.WithInboundInterceptors(early))
	got, err := testkit.Held.Call(testkit.Background, served, "a")
	require.NoError(t, err)
	require.Equal(t, "a", got)
	made, _ := testkit.Connect(t, svc)
	got, err = testkit.Held.Call(testkit.Background, asterisque.Intercept(made, early), "b")
	require.NoError(t, err)
	require.Equal(t, "b", got)
	testkit.WantIdle(t, served, accepted, made)
}

// TestRefusal_NeverAfterRun requires that the error of a call that has run does not report a
// refusal, even if an interceptor returns the refusal of another call or the handler ends its
// goroutine.
func TestRefusal_NeverAfterRun(t *testing.T) {
	refusal := &asterisque.Abort{Code: codec.Overloaded, Message: "of another call", Ran: codec.Refused}
	svc := asterisque.NewService()
	testkit.Work.Handle(svc, func(_ context.Context, n int) (int, error) {
		if n == 1 {
			runtime.Goexit()
		}
		return n, nil
	})
	for how, err := range map[string]error{"as it is": refusal, "wrapped": fmt.Errorf("quota: %w", refusal)} {
		for _, n := range []int{0, 1} {
			t.Run(fmt.Sprint(how, n), func(t *testing.T) {
				late := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
					over := make(chan struct{})
					go func() {
						defer close(over)
						next(ctx, c)
					}()
					<-over
					return err
				}
				dialled, accepted := testkit.Connect(t, svc, asterisque.WithInboundInterceptors(late))
				_, got := testkit.Work.Call(testkit.Background, dialled, n)
				require.ErrorIs(t, got, asterisque.ErrOverloaded)
				require.ErrorContains(t, got, "of another call")
				require.False(t, asterisque.Repeatable(got))
				testkit.WantIdle(t, dialled, accepted)
			})
		}
	}
}

// TestInterceptor_ParamsBound uses an interceptor that unpacks parameters: they have the bound of
// received ones.
func TestInterceptor_ParamsBound(t *testing.T) {
	lists := asterisque.Func[[][]string, int](40, "lists")
	svc := asterisque.NewService()
	lists.Handle(svc, func(_ context.Context, l [][]string) (int, error) { return len(l), nil })
	for _, looks := range []bool{false, true} {
		unpacks := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			empty := strings.Repeat("\x80", 0xffff) // 0xffff lists
			c.SetRawParams(append([]byte("\x99\xff\xff"), empty...))
			if looks {
				require.Nil(t, c.Params())
			}
			return next(ctx, c)
		}
		dialled, accepted := testkit.Connect(t, svc, asterisque.WithInboundInterceptors(unpacks),
			asterisque.WithLimits(asterisque.Limits{Expansion: asterisque.Expansion{Times: 2, Plus: -1}}))
		_, err := lists.Call(testkit.Background, dialled, nil)
		require.ErrorIs(t, err, asterisque.ErrBadParams)
		require.ErrorContains(t, err, "see Limits.Expansion")
		require.True(t, asterisque.Repeatable(err), "its handler did not run")
		testkit.WantIdle(t, dialled, accepted)
	}
}

// TestDurable_ConnectionGaveUp: a durable call that a Connection has given up is no longer durable
// there, for choices among several Callers.
func TestDurable_ConnectionGaveUp(t *testing.T) {
	conn, _ := testkit.Lasting(t, testkit.EchoService())
	conn.Close()
	dialled, _ := testkit.Connect(t, testkit.EchoService())
	_, err := testkit.Echo.Call(testkit.Background, otherwise(conn, dialled), "a", asterisque.WithDurable())
	require.ErrorContains(t, err, "a durable call needs a Connection")
}
