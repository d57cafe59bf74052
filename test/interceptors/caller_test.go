package interceptors

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// invoker is a function that implements Caller.
type invoker func(ctx context.Context, c *asterisque.Call) error

func (f invoker) Invoke(ctx context.Context, c *asterisque.Call) error { return f(ctx, c) }

// otherwise is a Caller that tries several Callers in order, as long as the call did not run.
func otherwise(on ...asterisque.Caller) invoker {
	return func(ctx context.Context, c *asterisque.Call) (err error) {
		for _, o := range on {
			if err = o.Invoke(ctx, c); err == nil || !asterisque.Repeatable(err) {
				return err
			}
		}
		return err
	}
}

// Every kind of call can be made on a Caller of the application.
func TestCaller_EveryKind(t *testing.T) {
	svc := testkit.SumService()
	testkit.Echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	svc.Handle(50, "stream", func(ctx context.Context, p *pipe.Pipe, params []byte) ([]byte, error) {
		b, err := p.Recv(ctx)
		return append(params, b.Payload...), err
	})
	dead, _ := testkit.Connect(t, testkit.EchoService())
	dead.Close()
	dialled, accepted := testkit.Connect(t, svc)
	for name, on := range map[string]asterisque.Caller{
		"a session":    dialled,
		"a wrapper":    invoker(func(ctx context.Context, c *asterisque.Call) error { return dialled.Invoke(ctx, c) }),
		"the second":   otherwise(dead, dialled),
		"the third":    otherwise(dead, otherwise(dead, dialled)),
		"interceptors": asterisque.Intercept(otherwise(dead, dialled), testkit.Passes, testkit.Passes),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := testkit.Echo.Call(testkit.Background, on, "a")
			require.NoError(t, err)
			require.Equal(t, "a", got)
			raw, err := asterisque.CallOn(testkit.Background, on, testkit.Echo.Number(), []byte("\x61b"))
			require.NoError(t, err)
			require.Equal(t, "\x61b", string(raw))
			p, err := asterisque.OpenOn(testkit.Background, on, 50, []byte("c"))
			require.NoError(t, err)
			require.NoError(t, p.Send(testkit.Background, []byte("d")))
			raw, err = p.Result(testkit.Background)
			require.NoError(t, err)
			require.Equal(t, "cd", string(raw))
			call, err := testkit.Sums.Open(testkit.Background, on, testkit.Window{N: 1})
			require.NoError(t, err)
			for i := range 3 {
				require.NoError(t, call.Send(testkit.Background, i+1))
			}
			require.NoError(t, call.CloseSend())
			sum := 0
			for v, err := range call.All(testkit.Background) {
				require.NoError(t, err)
				sum = v
			}
			require.Equal(t, 6, sum)
			n, err := call.Result(testkit.Background)
			require.NoError(t, err)
			require.Equal(t, 3, n)
			_, err = testkit.Echo.Call(testkit.Background, on, "a", asterisque.WithDurable())
			require.ErrorIs(t, err, asterisque.ErrUnavailable)
			require.ErrorContains(t, err, "a durable call needs a Connection")
			_, err = testkit.Sums.Open(testkit.Background, on, testkit.Window{N: 1}, asterisque.WithDurable())
			require.ErrorContains(t, err, "a call that carries Blocks cannot be durable")
		})
	}
	testkit.WantIdle(t, dialled, accepted)
}

// A Caller may answer without a call.
func TestCaller_Answers(t *testing.T) {
	var first *asterisque.Call
	fake := invoker(func(_ context.Context, c *asterisque.Call) error {
		first = c
		if !c.Typed() {
			raw, err := c.RawParams()
			c.SetRawResult(append(raw, '!'))
			return err
		}
		if _, err := c.RawParams(); err == nil {
			return errors.New("there is no codec without a session")
		}
		return c.SetResult(c.Params().(string) + "!")
	})
	got, err := testkit.Echo.Call(testkit.Background, fake, "a")
	require.NoError(t, err)
	require.Equal(t, "a!", got)
	require.Nil(t, first.Session())
	raw, err := asterisque.CallOn(testkit.Background, fake, 7, []byte("a"))
	require.NoError(t, err)
	require.Equal(t, "a!", string(raw))
	_, err = testkit.Work.Call(testkit.Background, invoker(func(_ context.Context, c *asterisque.Call) error { return c.SetResult("x") }), 1)
	require.ErrorContains(t, err, "the result cannot be set: it is a int, and not a string")
	_, err = testkit.Work.Call(testkit.Background, invoker(func(_ context.Context, c *asterisque.Call) error { c.SetRawResult([]byte{1}); return nil }), 1)
	require.ErrorContains(t, err, "no session was found with a codec for them: set the value")
	_, err = testkit.Sums.Open(testkit.Background, invoker(func(context.Context, *asterisque.Call) error { return nil }), testkit.Window{N: 1})
	require.ErrorContains(t, err, "neither called on, nor set a result")
}

// The error of a Caller becomes the cause of an Abort.
func TestCaller_ErrorIsCause(t *testing.T) {
	fails := func(err error) asterisque.Caller {
		return invoker(func(context.Context, *asterisque.Call) error { return err })
	}
	_, err := testkit.Echo.Call(testkit.Background, fails(io.ErrUnexpectedEOF), "")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorIs(t, err, &asterisque.Abort{Code: codec.Failed})
	var a *asterisque.Abort
	require.ErrorAs(t, err, &a)
	require.False(t, asterisque.Repeatable(err), "unknown")
	_, err = testkit.Echo.Call(testkit.Background, fails(context.DeadlineExceeded), "")
	require.ErrorIs(t, err, asterisque.ErrExpired)
	_, err = testkit.Echo.Call(testkit.Background, fails(asterisque.ErrOverloaded), "")
	require.ErrorIs(t, err, asterisque.ErrOverloaded)
	_, err = testkit.Echo.Call(testkit.Background, fails(panickingError{}), "")
	require.ErrorIs(t, err, asterisque.ErrPanicked)
	_, err = testkit.Echo.Call(testkit.Background, fails((*asterisque.Abort)(nil)), "")
	require.Error(t, err)
}

type panickingError struct{}

func (panickingError) Error() string { panic("x") }

// TestCaller_ServedCall: a served call cannot be made again. It is for gateways, which make a call
// of their own.
func TestCaller_ServedCall(t *testing.T) {
	behind, _ := testkit.Connect(t, testkit.EchoService())
	var refused error
	relays := func(ctx context.Context, c *asterisque.Call, _ asterisque.Next) error {
		if refused = behind.Invoke(ctx, c); refused == nil {
			return nil
		}
		raw, err := c.RawParams()
		if err != nil {
			return err
		}
		result, err := asterisque.CallOn(ctx, behind, c.Function(), raw)
		c.SetRawResult(result)
		return err
	}
	before, _ := testkit.Connect(t, testkit.EchoService(), asterisque.WithInboundInterceptors(relays))
	got, err := testkit.Echo.Call(testkit.Background, before, "a")
	require.NoError(t, err)
	require.Equal(t, "a", got)
	require.ErrorContains(t, refused, `function 10 "echo": a call that is served is not made again: make one of its own, by CallOn or OpenOn`)
	require.ErrorContains(t, behind.Invoke(testkit.Background, nil), "there is no call to make")
	require.ErrorContains(t, behind.Invoke(testkit.Background, new(asterisque.Call)), "there is no call to make")
}

// TestInterceptors_EachAttempt: the interceptors of a node run for each attempt of a connection,
// and those of the Caller once for all.
func TestInterceptors_EachAttempt(t *testing.T) {
	var attempts, calls atomic.Int64
	counts := func(n *atomic.Int64) asterisque.Interceptor {
		return func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			n.Add(1)
			return next(ctx, c)
		}
	}
	svc, h := testkit.HoldService()
	conn, cut := testkit.Lasting(t, svc, asterisque.WithOutboundInterceptors(counts(&attempts)))
	on := asterisque.Intercept(conn, counts(&calls))
	done := make(chan error, 1)
	go func() {
		_, err := testkit.Held.Call(testkit.Background, on, "a", asterisque.WithDurable())
		done <- err
	}()
	<-h.Began
	cut.Cut()
	testkit.Settled(t, func() bool { return attempts.Load() == 2 })
	h.End <- struct{}{}
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(testkit.Patience):
		t.Fatal("the call is not answered")
	}
	require.EqualValues(t, 1, calls.Load())
	_, err := testkit.Echo.Call(testkit.Background, on, "x")
	require.NoError(t, err)
	require.EqualValues(t, 3, attempts.Load())
	require.EqualValues(t, 2, calls.Load())
}

// TestOption_AroundOneCall: an option adds an interceptor to one call, and that interceptor may
// serve many.
func TestOption_AroundOneCall(t *testing.T) {
	dialled, _ := testkit.Connect(t, testkit.EchoService())
	way := new(trail)
	option := asterisque.WithCallInterceptors(way.around("a"), way.around("b"))
	for range 3 {
		_, err := testkit.Echo.Call(testkit.Background, dialled, "x", option, asterisque.WithCallInterceptors(way.around("c")))
		require.NoError(t, err)
		require.Equal(t, "a> b> c> <c <b <a", way.take())
	}
	_, err := dialled.Call(testkit.Background, testkit.Echo.Number(), []byte("\x61x"), option)
	require.NoError(t, err)
	require.Equal(t, "a> b> <b <a", way.take())
	p, err := dialled.Open(testkit.Background, testkit.Echo.Number(), []byte("\x61x"), option)
	require.NoError(t, err)
	p.Abort(nil)
	require.Equal(t, "a> b> <b <a", way.take())
	_, err = testkit.Echo.Call(testkit.Background, dialled, "x")
	require.NoError(t, err)
	require.Empty(t, way.take())
}

// TestRepeatable_NoAttemptRan requires that Repeatable reports true only if no attempt ran:
// outcomes of other attempts, which did not run, do not count.
func TestRepeatable_NoAttemptRan(t *testing.T) {
	gone, _ := testkit.Connect(t, testkit.EchoService())
	gone.Close()
	_, never := testkit.Echo.Call(testkit.Background, gone, "")
	require.True(t, asterisque.Repeatable(never))
	svc := asterisque.NewService()
	testkit.Work.Handle(svc, func(_ context.Context, n int) (int, error) {
		if n == 0 {
			return 0, errors.New("no")
		}
		return n, nil
	})
	dialled, _ := testkit.Connect(t, svc)
	both := invoker(func(ctx context.Context, c *asterisque.Call) error {
		return errors.Join(gone.Invoke(ctx, c), dialled.Invoke(ctx, c), gone.Invoke(ctx, c))
	})
	for _, n := range []int{0, 1} {
		_, err := testkit.Work.Call(testkit.Background, both, n)
		require.Error(t, err)
		require.False(t, asterisque.Repeatable(err), "it has run, in spite of the other attempts")
	}
	_, err := testkit.Work.Call(testkit.Background, otherwise(gone, gone), 1)
	require.True(t, asterisque.Repeatable(err))

	late := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		next(ctx, c)
		return &asterisque.Abort{Code: codec.Overloaded, Ran: codec.Refused}
	}
	served, _ := testkit.Connect(t, svc, asterisque.WithInboundInterceptors(late))
	_, err = testkit.Work.Call(testkit.Background, served, 1)
	require.ErrorIs(t, err, asterisque.ErrOverloaded)
	require.False(t, asterisque.Repeatable(err))
}

// TestPipe_NotReturned covers interceptors that open a pipe, and do not return it.
func TestPipe_NotReturned(t *testing.T) {
	dialled, accepted := testkit.Connect(t, testkit.SumService())
	ended := make(chan error, 1)
	ends := func(how func()) asterisque.Interceptor {
		return func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			c.WrapBlocks(asterisque.Blocks{End: func(_ []byte, err error) ([]byte, error) { ended <- err; return nil, err }})
			if err := next(ctx, c); err != nil {
				return err
			}
			how()
			return asterisque.ErrUnauthorized
		}
	}
	for how, f := range map[string]func(){"an error": func() {}, "a panic": func() { panic("x") }, "the end of the goroutine": runtime.Goexit} {
		t.Run(how, func(t *testing.T) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, err := testkit.Sums.Open(testkit.Background, asterisque.Intercept(dialled, ends(f)), testkit.Window{N: 1})
				require.Error(t, err)
			}()
			<-done
			require.ErrorIs(t, <-ended, asterisque.ErrCanceled)
			testkit.WantIdle(t, dialled, accepted)
		})
	}
}
