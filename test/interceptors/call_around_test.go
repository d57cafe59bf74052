package interceptors

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// bitwise is code around a pipe that flips all bits, so that only a peer with the same code
// understands it.
func bitwise() piping.StreamInterceptor {
	flip := func(b []byte) ([]byte, error) {
		b = bytes.Clone(b)
		for i := range b {
			b[i] = ^b[i]
		}
		return b, nil
	}
	return piping.StreamInterceptor{Send: flip, Recv: flip}
}

// Values pass the code around their pipe.
func TestAround_Values(t *testing.T) {
	echo := asterisque.Stream[int, string, string, int](1, "echo")
	svc := asterisque.NewService()
	echo.Handle(svc, func(ctx context.Context, _ int, p *asterisque.Pipe[string, string]) (n int, err error) {
		(*piping.End)(p.Untyped()).Wrap(bitwise())
		for v, err := range p.All(ctx) {
			if err != nil {
				return n, err
			}
			if err := p.Send(ctx, v); err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	})
	dialled, _ := testkit.Connect(t, svc)
	call, err := echo.Open(testkit.Background, dialled, 0)
	require.NoError(t, err)
	blocks := 0
	count := func(b []byte) ([]byte, error) { blocks++; return b, nil }
	(*piping.End)(call.Untyped()).Wrap(bitwise(), piping.StreamInterceptor{Send: count, Recv: count})
	for _, want := range []string{"a", "", "c"} {
		require.NoError(t, call.Send(testkit.Background, want))
		got, err := call.Recv(testkit.Background)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.NoError(t, call.CloseSend())
	n, err := call.Result(testkit.Background)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.Equal(t, 6, blocks)
}

// An interceptor sees the outcome as changed by those inside it.
func TestInterceptor_FinalOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, h := testkit.HoldService()
		r := new(recorder)
		gate := make(chan struct{})
		refuses := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			if c.Blocks() {
				c.WrapBlocks(asterisque.Blocks{End: func([]byte, error) ([]byte, error) {
					<-gate
					return nil, codec.ErrUnauthorized
				}})
			}
			return next(ctx, c)
		}
		here, there := asterisque.NewNode(asterisque.WithOutboundInterceptors(r.made, refuses)), asterisque.NewNode(asterisque.WithService(svc))
		defer here.Close()
		defer there.Close()
		dialled, _ := asterisquetest.ConnectNodes(t, here, there)
		p, err := dialled.Open(testkit.Background, testkit.Held.Number(), []byte("\x61a"))
		require.NoError(t, err)
		close(h.End)
		synctest.Wait()
		require.NoError(t, p.Err())
		_, err = testkit.Echo.Call(testkit.Background, dialled, "hi")
		require.NoError(t, err, "the reader does not wait")
		close(gate)
		synctest.Wait()
		require.ErrorIs(t, p.Err(), codec.ErrUnauthorized)
		require.Equal(t, []string{`call 10 "echo"`, `call 60 ""`, "call done: ok", "call done: " + codec.Unauthorized.String()}, r.take(t))
	})
}

// Code around a pipe that ends its goroutine fails only its call.
func TestAround_Goexit(t *testing.T) {
	for how, misbehave := range map[string]func(){"panicked": func() { panic("oops") }, "ended its goroutine": runtime.Goexit} {
		for _, served := range []bool{false, true} {
			t.Run(how, func(t *testing.T) {
				bad := func([]byte) ([]byte, error) { misbehave(); return nil, nil }
				around := piping.StreamInterceptor{Send: bad, Recv: bad}
				echo := asterisque.Stream[int, string, string, int](1, "echo")
				svc := asterisque.NewService()
				echo.Handle(svc, func(ctx context.Context, _ int, p *asterisque.Pipe[string, string]) (int, error) {
					if served {
						(*piping.End)(p.Untyped()).Wrap(around)
					}
					_, err := p.Recv(ctx)
					return 0, err
				})
				var log testkit.Logged
				dialled, _ := testkit.Connect(t, svc, asterisque.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				call, err := echo.Open(testkit.Background, dialled, 0)
				require.NoError(t, err)
				if !served {
					(*piping.End)(call.Untyped()).Wrap(around)
				}
				over := make(chan struct{})
				go func() {
					defer close(over)
					call.Send(testkit.Background, "a")
				}()
				<-over
				_, err = call.Result(testkit.Background)
				require.ErrorIs(t, err, codec.ErrPanicked)
				require.Equal(t, served, err.(*asterisque.Abort).Remote)
				again, err := echo.Open(testkit.Background, dialled, 0)
				require.NoError(t, err, "the session continues")
				again.Abort(nil)
				dialled.Close()
				require.Contains(t, log.String(), "interceptor "+how)
				require.Contains(t, log.String(), "function=1")
			})
		}
	}
}

// An outcome that is never completed blocks no handler longer than its context.
func TestOutcome_NeverFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, returned := make(chan struct{}), make(chan error, 1)
		echo := asterisque.Stream[int, string, string, int](1, "echo")
		svc := asterisque.NewService()
		echo.Handle(svc, func(ctx context.Context, _ int, p *asterisque.Pipe[string, string]) (int, error) {
			(*piping.End)(p.Untyped()).Wrap(piping.StreamInterceptor{End: func(r []byte, err error) ([]byte, error) {
				<-gate
				return r, err
			}})
			_, err := p.Recv(ctx)
			returned <- err
			return 0, err
		})
		here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(svc))
		defer here.Close()
		defer there.Close()
		dialled, _ := asterisquetest.ConnectNodes(t, here, there)
		call, err := echo.Open(testkit.Background, dialled, 0)
		require.NoError(t, err)
		synctest.Wait()
		call.Abort(nil)
		require.ErrorIs(t, <-returned, codec.ErrCanceled)
		close(gate)
	})
}
