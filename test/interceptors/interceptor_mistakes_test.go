package interceptors

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// next does nothing after the end of a call.
func TestNext_AfterTheEnd(t *testing.T) {
	svc := asterisque.NewService()
	testkit.Work.Handle(svc, func(_ context.Context, n int) (int, error) { return n, nil })
	for _, side := range []string{"made", "served"} {
		t.Run(side, func(t *testing.T) {
			var kept asterisque.Next
			var call *asterisque.Call
			keep := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
				kept, call = next, c
				return next(ctx, c)
			}
			option := asterisque.WithOutboundInterceptors(keep)
			if side == "served" {
				option = asterisque.WithInboundInterceptors(keep)
			}
			here, there := testkit.NewNode(t, asterisque.WithService(svc), option), testkit.NewNode(t, asterisque.WithService(svc))
			dialled, accepted := testkit.ConnectNodes(t, there, here)
			from := map[string]*asterisque.Session{"made": accepted, "served": dialled}[side]
			_, err := testkit.Work.Call(testkit.Background, from, 1)
			require.NoError(t, err)
			testkit.Settled(t, func() bool { return accepted.Stats().Running == 0 })
			require.ErrorContains(t, kept(testkit.Background, call), "an interceptor calls on after the call has ended: call on before the interceptor returns")
		})
	}
}

// TestNext_EndWaitsForIt uses an interceptor that returns while it makes a call on another
// goroutine.
func TestNext_EndWaitsForIt(t *testing.T) {
	svc, h := testkit.HoldService()
	early := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		go next(ctx, c) // the end of the call waits for it
		<-h.Began
		require.ErrorContains(t, next(ctx, c), "an interceptor calls on while the call is being carried out")
		go func() { h.End <- struct{}{} }()
		return asterisque.ErrUnauthorized
	}
	svc.Intercept(early)
	dialled, accepted := testkit.Connect(t, svc)
	_, err := testkit.Held.Call(testkit.Background, dialled, "a")
	require.ErrorIs(t, err, asterisque.ErrUnauthorized)
	testkit.WantIdle(t, dialled, accepted)
}

// The error for an interceptor that returns without a result or an error says so.
func TestInterceptor_NoAnswer(t *testing.T) {
	silent := func(context.Context, *asterisque.Call, asterisque.Next) error { return nil }
	dialled, _ := testkit.Connect(t, testkit.SumService(), asterisque.WithInboundInterceptors(silent))
	const want = "an interceptor has neither called on, nor set a result, nor returned an error"
	_, err := testkit.Work.Call(testkit.Background, asterisque.Intercept(dialled, silent), 1)
	require.ErrorContains(t, err, `function 30 "work": `+want)
	_, err = asterisque.OpenOn(testkit.Background, asterisque.Intercept(dialled, silent), 50, nil)
	require.ErrorContains(t, err, want)
	call, err := testkit.Sums.Open(testkit.Background, dialled, testkit.Window{N: 1})
	require.NoError(t, err)
	_, err = call.Result(testkit.Background)
	require.ErrorContains(t, err, `function 20 "sums": `+want)
	require.ErrorIs(t, err, &asterisque.Abort{Code: codec.Failed})
}

// Values that an interceptor sets have to be of the types of the function.
func TestInterceptor_FunctionsTypes(t *testing.T) {
	svc := asterisque.NewService()
	testkit.Work.Handle(svc, func(_ context.Context, n int) (int, error) { return n, nil })
	svc.Handle(51, "raw", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) { return params, nil })
	var found []string
	check := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		for _, err := range []error{c.SetParams("x"), c.SetResult("x"), c.WrapBlocks(asterisque.Blocks{}), c.SetTrace(nil)} {
			text := ""
			if err != nil {
				text = err.Error()
			}
			found = append(found, text)
		}
		return next(ctx, c)
	}
	dialled, _ := testkit.Connect(t, svc, asterisque.WithInboundInterceptors(check))
	const at = `asterisque: failed: function 30 "work": `
	_, err := testkit.Work.Call(testkit.Background, dialled, 1)
	require.NoError(t, err)
	require.Equal(t, []string{
		at + "the parameters cannot be set: it is a int, and not a string", at + "the result cannot be set: it is a int, and not a string",
		at + "it carries no Blocks", at + "its trace context has come with it, and cannot be set",
	}, found)
	found = nil
	_, err = dialled.Call(testkit.Background, 51, []byte{1})
	require.NoError(t, err)
	require.Equal(t, `asterisque: failed: function 51 "raw": the parameters cannot be set: it is untyped: set the bytes`, found[0])
}

// TestRefusal_DidNotRun: a refusal reports that the call did not run, as a rate limit needs.
func TestRefusal_DidNotRun(t *testing.T) {
	svc := asterisque.NewService()
	testkit.Work.Handle(svc, func(_ context.Context, n int) (int, error) { return n, nil })
	for _, late := range []bool{false, true} {
		refuse := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			if late {
				next(ctx, c)
			}
			return c.Refuse(asterisque.ErrOverloaded.Withf("too many"))
		}
		dialled, _ := testkit.Connect(t, svc, asterisque.WithInboundInterceptors(refuse))
		_, err := testkit.Work.Call(testkit.Background, dialled, 1)
		require.ErrorIs(t, err, asterisque.ErrOverloaded)
		require.Equal(t, !late, asterisque.Repeatable(err), "refused by the peer")
		plain, _ := testkit.Connect(t, svc)
		_, err = testkit.Work.Call(testkit.Background, asterisque.Intercept(plain, refuse), 1)
		require.ErrorIs(t, err, asterisque.ErrOverloaded)
		require.Equal(t, !late, asterisque.Repeatable(err), "refused on this side")
	}
}

// A refused call may be refused again.
func TestRefusal_Twice(t *testing.T) {
	gone, _ := testkit.Connect(t, testkit.EchoService())
	gone.Close()
	refuse := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		require.True(t, asterisque.Repeatable(next(ctx, c)))
		return c.Refuse(asterisque.ErrOverloaded)
	}
	_, err := testkit.Echo.Call(testkit.Background, asterisque.Intercept(gone, refuse), "")
	require.ErrorIs(t, err, asterisque.ErrOverloaded)
	require.True(t, asterisque.Repeatable(err))
}

// TestRepeatable_Overloaded requires that ErrOverloaded is repeatable if an interceptor refuses the
// call before the handler has begun, and not if the handler returns it.
func TestRepeatable_Overloaded(t *testing.T) {
	busy := asterisque.Func[string, string](61, "busy")
	for name, c := range map[string]struct {
		opts       []asterisque.HandlerOption
		repeatable bool
	}{
		"the handler": {nil, false},
		"an interceptor": {[]asterisque.HandlerOption{asterisque.WithFunctionInterceptors(func(_ context.Context, c *asterisque.Call, _ asterisque.Next) error {
			return c.Refuse(asterisque.ErrOverloaded)
		})}, true},
	} {
		svc := asterisque.NewService()
		busy.Handle(svc, func(context.Context, string) (string, error) { return "", asterisque.ErrOverloaded }, c.opts...)
		dialled, _ := testkit.Connect(t, svc)
		_, err := busy.Call(testkit.Background, dialled, "")
		require.ErrorIs(t, err, asterisque.ErrOverloaded, name)
		require.Equal(t, c.repeatable, asterisque.Repeatable(err), name)
	}
}

// The error names a nil interceptor.
func TestInterceptor_Nil(t *testing.T) {
	none := asterisque.Interceptor(nil)
	for what, f := range map[string]func(){
		"WithCallInterceptors":     func() { asterisque.WithCallInterceptors(testkit.Passes, none) },
		"WithFunctionInterceptors": func() { asterisque.WithFunctionInterceptors(testkit.Passes, none) },
		"Service.Intercept":        func() { asterisque.NewService().Intercept(testkit.Passes, none) },
		"Intercept":                func() { asterisque.Intercept(new(asterisque.Session), testkit.Passes, none) },
	} {
		require.Regexp(t, "^asterisque: "+what+" at .*/interceptor_mistakes_test.go:[0-9]+: interceptor 2 of 2 is nil: leave it out$", testkit.PanicOf(t, f))
	}
	require.ErrorContains(t, asterisque.NewNode(asterisque.WithOutboundInterceptors(testkit.Passes, nil)).Check(), "WithOutboundInterceptors: interceptor 2 of 2 is nil: leave it out")
	require.ErrorContains(t, asterisque.NewNode(asterisque.WithInboundInterceptors(nil)).Check(), "WithInboundInterceptors: interceptor 1 of 1 is nil: leave it out")
	require.Panics(t, func() { asterisque.Intercept(nil, testkit.Passes) })
	_, err := testkit.Echo.Call(testkit.Background, nil, "")
	require.ErrorContains(t, err, `function 10 "echo" is called on a nil Caller: call it on a Session or a Connection`)
	require.True(t, asterisque.Repeatable(err))
}
