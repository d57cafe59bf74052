package asterisque_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/pipe"
)

func TestNothingIsCarriedOutAfterTheEndOfACall(t *testing.T) {
	svc := asterisque.NewService()
	work.Handle(svc, func(_ context.Context, n int) (int, error) { return n, nil })
	for _, side := range []string{"made", "served"} {
		t.Run(side, func(t *testing.T) {
			var kept asterisque.Next
			var call *asterisque.Call
			keep := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
				kept, call = next, c
				return next(ctx, c)
			}
			option := asterisque.WithMadeInterceptors(keep)
			if side == "served" {
				option = asterisque.WithServedInterceptors(keep)
			}
			here, there := newNode(t, asterisque.WithService(svc), option), newNode(t, asterisque.WithService(svc))
			dialled, accepted := connectNodes(t, there, here)
			from := map[string]*asterisque.Session{"made": accepted, "served": dialled}[side]
			_, err := work.Call(background, from, 1)
			require.NoError(t, err)
			settled(t, func() bool { return accepted.Stats().Running == 0 })
			require.ErrorContains(t, kept(background, call), "an interceptor calls on after the call has ended: call on before the interceptor returns")
		})
	}
}

// TestACallEndsWhenWhatItStillCarriesOutHasReturned lets an interceptor return while it calls on,
// on another goroutine.
func TestACallEndsWhenWhatItStillCarriesOutHasReturned(t *testing.T) {
	svc, h := holdService()
	early := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		go next(ctx, c) // the end of the call waits for it
		<-h.began
		require.ErrorContains(t, next(ctx, c), "an interceptor calls on while the call is being carried out")
		go func() { h.end <- struct{}{} }()
		return asterisque.ErrUnauthorized
	}
	svc.Intercept(early)
	dialled, accepted := connect(t, svc)
	_, err := held.Call(background, dialled, "a")
	require.ErrorIs(t, err, asterisque.ErrUnauthorized)
	wantIdle(t, dialled, accepted)
}

func TestAnInterceptorThatAnswersWithoutAnAnswerIsToldSo(t *testing.T) {
	silent := func(context.Context, *asterisque.Call, asterisque.Next) error { return nil }
	dialled, _ := connect(t, sumService(), asterisque.WithServedInterceptors(silent))
	const want = "an interceptor has neither called on, nor set a result, nor returned an error"
	_, err := work.Call(background, asterisque.Intercept(dialled, silent), 1)
	require.ErrorContains(t, err, `function 30 "work": `+want)
	_, err = asterisque.OpenOn(background, asterisque.Intercept(dialled, silent), 50, nil)
	require.ErrorContains(t, err, want)
	call, err := sums.Open(background, dialled, window{N: 1})
	require.NoError(t, err)
	_, err = call.Result(background)
	require.ErrorContains(t, err, `function 20 "sums": `+want)
	require.ErrorIs(t, err, &asterisque.Abort{Code: codec.Failed})
}

func TestWhatAnInterceptorSetsIsOfTheFunctionsTypes(t *testing.T) {
	svc := asterisque.NewService()
	work.Handle(svc, func(_ context.Context, n int) (int, error) { return n, nil })
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
	dialled, _ := connect(t, svc, asterisque.WithServedInterceptors(check))
	const at = `asterisque: failed: function 30 "work": `
	_, err := work.Call(background, dialled, 1)
	require.NoError(t, err)
	require.Equal(t, []string{
		at + "the parameters cannot be set: it is a int, and not a string", at + "the result cannot be set: it is a int, and not a string",
		at + "it carries no Blocks", at + "its trace context has come with it, and cannot be set",
	}, found)
	found = nil
	_, err = dialled.Call(background, 51, []byte{1})
	require.NoError(t, err)
	require.Equal(t, `asterisque: failed: function 51 "raw": the parameters cannot be set: it is untyped: set the bytes`, found[0])
}

// TestARefusalSaysThatTheCallDidNotRun is what a limit on the rate of calls needs.
func TestARefusalSaysThatTheCallDidNotRun(t *testing.T) {
	svc := asterisque.NewService()
	work.Handle(svc, func(_ context.Context, n int) (int, error) { return n, nil })
	for _, late := range []bool{false, true} {
		refuse := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			if late {
				next(ctx, c)
			}
			return c.Refuse(asterisque.ErrOverloaded.Withf("too many"))
		}
		dialled, _ := connect(t, svc, asterisque.WithServedInterceptors(refuse))
		_, err := work.Call(background, dialled, 1)
		require.ErrorIs(t, err, asterisque.ErrOverloaded)
		require.Equal(t, !late, asterisque.Repeatable(err), "refused by the peer")
		plain, _ := connect(t, svc)
		_, err = work.Call(background, asterisque.Intercept(plain, refuse), 1)
		require.ErrorIs(t, err, asterisque.ErrOverloaded)
		require.Equal(t, !late, asterisque.Repeatable(err), "refused on this side")
	}
}

func TestACallThatWasRefusedMayBeRefusedAgain(t *testing.T) {
	gone, _ := connect(t, echoService())
	gone.Close()
	refuse := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		require.True(t, asterisque.Repeatable(next(ctx, c)))
		return c.Refuse(asterisque.ErrOverloaded)
	}
	_, err := echo.Call(background, asterisque.Intercept(gone, refuse), "")
	require.ErrorIs(t, err, asterisque.ErrOverloaded)
	require.True(t, asterisque.Repeatable(err))
}

func TestAnInterceptorThatIsNilIsNamed(t *testing.T) {
	none := asterisque.Interceptor(nil)
	for what, f := range map[string]func(){
		"WithCallInterceptors":     func() { asterisque.WithCallInterceptors(passes, none) },
		"WithFunctionInterceptors": func() { asterisque.WithFunctionInterceptors(passes, none) },
		"Service.Intercept":        func() { asterisque.NewService().Intercept(passes, none) },
		"Intercept":                func() { asterisque.Intercept(new(asterisque.Session), passes, none) },
	} {
		require.Regexp(t, "^asterisque: "+what+" at .*/interceptor_mistakes_test.go:[0-9]+: interceptor 2 of 2 is nil: leave it out$", panicOf(t, f))
	}
	require.ErrorContains(t, asterisque.NewNode(asterisque.WithMadeInterceptors(passes, nil)).Check(), "WithMadeInterceptors: interceptor 2 of 2 is nil: leave it out")
	require.ErrorContains(t, asterisque.NewNode(asterisque.WithServedInterceptors(nil)).Check(), "WithServedInterceptors: interceptor 1 of 1 is nil: leave it out")
	require.Panics(t, func() { asterisque.Intercept(nil, passes) })
	_, err := echo.Call(background, nil, "")
	require.ErrorContains(t, err, `function 10 "echo" is called on a nil Caller: call it on a Session or a Connection`)
	require.True(t, asterisque.Repeatable(err))
}
