package streams

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// A stream runs in both directions, and each ends separately.
func TestStream_BothWays(t *testing.T) {
	dialled, _ := testkit.Connect(t, testkit.SumService())
	call, err := testkit.Sums.Open(testkit.Background, dialled, testkit.Window{N: 2})
	require.NoError(t, err)
	for i := range 10 {
		require.NoError(t, call.Send(testkit.Background, i))
	}
	require.NoError(t, call.CloseSend())
	if err := call.Send(testkit.Background, 1); err != asterisque.ErrPipeClosed {
		// The call may have ended already.
		require.ErrorIs(t, err, pipe.ErrEnded)
	}
	var got []int
	for v, err := range call.All(testkit.Background) {
		require.NoError(t, err)
		got = append(got, v)
	}
	require.Equal(t, []int{1, 6, 15, 28, 45}, got)
	n, err := call.Result(testkit.Background)
	require.NoError(t, err)
	require.Equal(t, 10, n)
	require.ErrorIs(t, call.Send(testkit.Background, 1), asterisque.ErrPipeClosed)
	_, err = call.Recv(testkit.Background)
	require.Equal(t, io.EOF, err)
}

// TestStream_ReceiveRest breaks out of the loop over an endless stream, and requires that the rest
// of the stream is received.
func TestStream_ReceiveRest(t *testing.T) {
	endless := asterisque.Stream[string, string, int, string](60, "endless")
	ended := make(chan error, 1)
	svc := asterisque.NewService()
	endless.Handle(svc, func(ctx context.Context, _ string, p *asterisque.Pipe[int, string]) (string, error) {
		for i := 0; ; i++ {
			if err := p.Send(ctx, i); err != nil {
				<-ctx.Done() // soon, as the call is over
				ended <- ctx.Err()
				return "", err
			}
		}
	})
	asked := asterisque.Stream[string, string, int, string](61, "asked")
	asked.Handle(svc, func(ctx context.Context, _ string, p *asterisque.Pipe[int, string]) (string, error) {
		if _, err := p.Recv(ctx); err != nil {
			return "", err
		}
		return "", p.Send(ctx, 0)
	})
	dialled, _ := testkit.Connect(t, svc)
	for name, leave := range map[string]func(*asterisque.StreamCall[string, int, string]){
		"break": func(call *asterisque.StreamCall[string, int, string]) {
			for v, err := range call.All(testkit.Background) {
				require.NoError(t, err)
				if v == 3 {
					break
				}
			}
		},
		"panic": func(call *asterisque.StreamCall[string, int, string]) {
			require.Panics(t, func() {
				for range call.All(testkit.Background) {
					panic("no")
				}
			})
		},
	} {
		call, err := endless.Open(testkit.Background, dialled, "")
		require.NoError(t, err)
		leave(call)
		require.ErrorIs(t, <-ended, context.Canceled, name)
		_, err = call.Result(testkit.Background)
		require.ErrorIs(t, err, asterisque.ErrCanceled, name)
		require.ErrorContains(t, err, "the loop over the values of the call was left", name)
	}

	call, err := asked.Open(testkit.Background, dialled, "")
	require.NoError(t, err)
	for _, err := range call.All(testkit.Canceled()) {
		require.ErrorIs(t, err, asterisque.ErrCanceled)
		break
	}
	require.NoError(t, call.Send(testkit.Background, "now"))
	v, err := call.Recv(testkit.Background)
	require.NoError(t, err, "an error of the loop's own context ends the loop only")
	require.Zero(t, v)
	call.Abort(nil)
}

// Many streams share a session.
func TestStream_Many(t *testing.T) {
	dialled, accepted := testkit.Connect(t, testkit.SumService(), asterisque.WithService(testkit.SumService()))
	var wg sync.WaitGroup
	for i := range 100 {
		s := []*asterisque.Session{dialled, accepted}[i%2]
		wg.Go(func() {
			call, err := testkit.Sums.Open(testkit.Background, s, testkit.Window{N: 1})
			if err != nil {
				t.Error(err)
				return
			}
			go func() {
				for range 100 {
					call.Send(testkit.Background, 1)
				}
				call.CloseSend()
			}()
			last := 0
			for v, err := range call.All(testkit.Background) {
				if err != nil || v != last+1 {
					t.Errorf("got %d, %v after %d", v, err, last)
					return
				}
				last = v
			}
			if n, err := call.Result(testkit.Background); err != nil || n != 100 || last != 100 {
				t.Errorf("the result is %d, %v, and the last sum %d", n, err, last)
			}
		})
	}
	wg.Wait()
}

// A stream larger than its window arrives whole, and in order.
func TestStream_BeyondWindow(t *testing.T) {
	svc := asterisque.NewService()
	svc.Handle(21, "mirror", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		for {
			b, err := p.Recv(ctx)
			if err == io.EOF {
				return nil, nil
			}
			if err == nil {
				err = p.Send(ctx, b.Payload)
			}
			if err != nil {
				return nil, err
			}
		}
	})
	dialled, _ := testkit.Connect(t, svc, asterisque.WithLimits(asterisque.Limits{Window: 20_000}))
	p, err := dialled.Open(testkit.Background, 21, nil)
	require.NoError(t, err)
	var want bytes.Buffer
	go func() {
		for i := range 500 {
			if err := p.Send(testkit.Background, bytes.Repeat([]byte{byte(i)}, i*7%5000)); err != nil {
				t.Error(err)
			}
		}
		p.CloseSend()
	}()
	for i := range 500 {
		want.Write(bytes.Repeat([]byte{byte(i)}, i*7%5000))
	}
	var got bytes.Buffer
	for {
		b, err := p.Recv(testkit.Background)
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		got.Write(b.Payload)
	}
	require.True(t, bytes.Equal(want.Bytes(), got.Bytes()))
}

// A sleeping reader blocks only its own pipe.
func TestStream_SleepingReader(t *testing.T) {
	svc := testkit.EchoService()
	svc.Handle(22, "sleeper", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, nil
	})
	dialled, _ := testkit.Connect(t, svc, asterisque.WithLimits(asterisque.Limits{Window: 1000}))
	ctx, cancel := context.WithCancel(testkit.Background)
	defer cancel()
	p, err := dialled.Open(ctx, 22, nil)
	require.NoError(t, err)
	blocked := make(chan error)
	go func() {
		for {
			if err := p.Send(testkit.Background, make([]byte, 500)); err != nil {
				blocked <- err
				return
			}
		}
	}()
	for range 100 {
		_, err := testkit.Echo.Call(testkit.Background, dialled, "not held up")
		require.NoError(t, err)
	}
	cancel()
	require.ErrorIs(t, <-blocked, asterisque.ErrCanceled, "the context of Open ends the pipe, and the sender's wait")
}

// A call ends the streams of both sides.
func TestStream_CallEnds(t *testing.T) {
	started, serverErr := make(chan struct{}), make(chan error, 1)
	svc := asterisque.NewService()
	svc.Handle(23, "reader", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		started <- struct{}{}
		_, err := p.Recv(testkit.Background)
		serverErr <- err
		return nil, err
	})
	for name, end := range map[string]func(*pipe.Pipe, *asterisque.Session){
		"abort by the caller": func(p *pipe.Pipe, _ *asterisque.Session) { p.Abort(asterisque.ErrUnavailable) },
		"end of the session":  func(_ *pipe.Pipe, s *asterisque.Session) { s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			dialled, accepted := testkit.Connect(t, svc)
			p, err := dialled.Open(testkit.Background, 23, nil)
			require.NoError(t, err)
			<-started
			end(p, accepted)
			<-p.Done()
			require.Error(t, p.Err())
			_, err = p.Recv(testkit.Background)
			require.Equal(t, p.Err(), err)
			require.Error(t, <-serverErr)
		})
	}
}

// A typed receiver gets the number of missing values.
func TestStream_MissingValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		late := asterisque.Stream[int, int, int, []uint64](26, "late")
		late.Handle(svc, func(ctx context.Context, _ int, p *asterisque.Pipe[int, int]) (missing []uint64, err error) {
			fakeclock.Sleep(time.Minute)
			for v, err := range p.All(ctx) {
				if err != nil {
					return nil, err
				}
				missing = append(missing, uint64(v), p.Skipped())
			}
			return append(missing, p.Skipped()), nil
		})
		dialled, _ := testkit.InMemory(t, svc)
		call, err := late.Open(testkit.Background, dialled, 0)
		require.NoError(t, err)
		for v, ttl := range []time.Duration{0, time.Second, time.Hour, time.Second, time.Second, time.Hour, time.Second} {
			require.NoError(t, call.Untyped().Send(testkit.Background, []byte{byte(v)}, pipe.WithTTL(ttl)))
		}
		require.NoError(t, call.CloseSend())
		missing, err := call.Result(testkit.Background)
		require.NoError(t, err)
		require.Equal(t, []uint64{0, 0, 2, 1, 5, 3, 4}, missing, "values, each with how many were missing by then, and how many at the end")
	})
}

// Receiving values reuses the memory of their Blocks.
func TestStream_ReusesMemory(t *testing.T) {
	if race.Enabled {
		t.Skip("the detector makes pools forget")
	}
	type ignored struct{}
	const values, size = 500, 32 << 10
	svc := asterisque.NewService()
	drain := asterisque.Stream[int, ignored, int, int](27, "drain")
	drain.Handle(svc, func(ctx context.Context, _ int, p *asterisque.Pipe[int, ignored]) (n int, err error) {
		for _, err := range p.All(ctx) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	})
	dialled, _ := testkit.Connect(t, svc)
	payload, err := codec.CBOR.Append(nil, map[string][]byte{"of no use": make([]byte, size)})
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call, err := drain.Open(testkit.Background, dialled, 0)
	require.NoError(t, err)
	for range values {
		require.NoError(t, call.Untyped().Send(testkit.Background, payload))
	}
	require.NoError(t, call.CloseSend())
	n, err := call.Result(testkit.Background)
	require.NoError(t, err)
	require.Equal(t, values, n)
	runtime.ReadMemStats(&after)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)/values, uint64(size/2), "bytes for each value, both ends")
}

// The error of a type mismatch names the type.
func TestStream_TypeMismatch(t *testing.T) {
	dialled, _ := testkit.Connect(t, testkit.SumService())
	call, err := asterisque.Stream[testkit.Window, string, int, int](20, "sums").Open(testkit.Background, dialled, testkit.Window{N: 1})
	require.NoError(t, err)
	require.NoError(t, call.Send(testkit.Background, "one"))
	_, err = call.Result(testkit.Background)
	require.ErrorIs(t, err, asterisque.ErrBadParams)
	require.ErrorContains(t, err, `function 20 "sums": Block: an integer was expected, and`)
}

// A unary function accepts no Blocks.
func TestStream_OfUnary(t *testing.T) {
	svc, started, ended := testkit.BlockService()
	dialled, _ := testkit.Connect(t, svc)
	p, err := dialled.Open(testkit.Background, testkit.Block.Number(), []byte{0x60})
	require.NoError(t, err)
	<-started
	require.NoError(t, p.Send(testkit.Background, []byte("x")))
	_, err = p.Result(testkit.Background)
	require.ErrorContains(t, err, `function 11 "block" takes no Blocks`)
	<-ended
}
