package calls

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// HandleUnknown serves the functions without a handler.
func TestOthers_MissingFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		see := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			seen = append(seen, fmt.Sprintf("%d %s", c.Function(), c.Name()))
			return next(ctx, c)
		}
		svc := testkit.EchoService()
		svc.Intercept(see)
		svc.Describe(asterisque.WithGrantOnly())
		svc.HandleUnknown(func(ctx context.Context, p *pipe.Pipe, params []byte) ([]byte, error) {
			switch string(params) {
			case "panic":
				panic("as told")
			case "stay":
				<-ctx.Done()
				return nil, ctx.Err()
			case "block":
				b, err := p.Recv(ctx)
				if err == nil {
					err = p.Send(ctx, append(b.Payload, '!'))
				}
				return nil, err
			}
			return fmt.Appendf(nil, "%d: %s", p.Function(), params), nil
		})
		dialled, accepted := testkit.InMemory(t, svc)

		for _, function := range []uint16{0, 9, 11, 65_279} {
			got, err := dialled.Call(testkit.Background, function, []byte("x"))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("%d: x", function), string(got))
			require.Equal(t, fmt.Sprintf("%d others", function), seen[len(seen)-1])
		}
		got, err := testkit.Echo.Call(testkit.Background, dialled, "x")
		require.NoError(t, err)
		require.Equal(t, "x", got, "a handler of its own comes first")
		require.Equal(t, "10 echo", seen[len(seen)-1])
		p, err := dialled.Open(testkit.Background, 77, []byte("block"))
		require.NoError(t, err)
		require.NoError(t, p.Send(testkit.Background, []byte("hi")))
		b, err := p.Recv(testkit.Background)
		require.NoError(t, err)
		require.Equal(t, "hi!", string(b.Payload))

		for _, standard := range []uint16{65_280, asterisque.Describe.Number()} {
			_, err := dialled.Call(testkit.Background, standard, nil)
			require.ErrorIs(t, err, asterisque.ErrNoFunction, "what is not offered of the standard functions is not there")
		}
		_, err = dialled.Call(testkit.Background, 78, []byte("panic"))
		require.ErrorContains(t, err, `the handler of function 78 "others" panicked`)
		p, err = dialled.Open(testkit.Background, 79, []byte("stay"))
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, accepted.Pipes(), 1)
		require.EqualValues(t, 79, accepted.Pipes()[0].Function)
		require.Equal(t, "others", accepted.Pipes()[0].Name)
		p.Abort(nil)

		require.Len(t, svc.Functions(), 2, "they are not listed")
		require.Len(t, svc.Stats(), 2)
		testkit.WantIdle(t, dialled, accepted)
	})
}

// The options of HandleUnknown count for all its functions.
func TestOthers_Options(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		svc := asterisque.NewService()
		svc.HandleUnknown(func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { <-release; return nil, nil }, asterisque.WithConcurrency(1))
		dialled, accepted := testkit.InMemory(t, svc)
		for _, function := range []uint16{7, 8} {
			_, err := dialled.Open(testkit.Background, function, nil)
			require.NoError(t, err)
		}
		synctest.Wait()
		require.Equal(t, 1, accepted.Stats().Running)
		require.Equal(t, 1, accepted.Stats().Waiting)
		close(release)
		testkit.WantIdle(t, dialled, accepted)
	})
}

// HandleUnknown may be called once, and before serving.
func TestOthers_RegisteredOnce(t *testing.T) {
	svc := asterisque.NewService()
	first := line(1)
	svc.HandleUnknown(noHandler)
	require.Contains(t, testkit.PanicOf(t, func() { svc.HandleUnknown(nil) }), "HandleUnknown at "+line(0)+" has a nil handler")
	require.Contains(t, testkit.PanicOf(t, func() { svc.HandleUnknown(noHandler) }), "HandleUnknown at "+line(0)+", and before that at "+first)
	testkit.InMemory(t, svc)
	require.Contains(t, testkit.PanicOf(t, func() { svc.HandleUnknown(noHandler) }), "while the Service is served")
}
