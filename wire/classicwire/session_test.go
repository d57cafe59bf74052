package classicwire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/stream"
)

// person is sent as two parameters.
type person struct {
	Name string
	Age  int32
}

// point is sent as one parameter, which is a struct.
type point struct {
	_    struct{} `classic:"com.example.Point"`
	X, Y int32
}

var (
	echo     = asterisque.Func[string, string](10, "echo")
	describe = asterisque.Func[person, string](12, "describe")
	mirror   = asterisque.Func[point, point](13, "mirror")
	sum      = asterisque.Stream[int32, int32, int32, int64](20, "sum")
	back     = asterisque.Func[string, string](30, "back")
	fail     = asterisque.Func[int32, struct{}](50, "fail")
	nothing  = asterisque.Func[struct{}, struct{}](60, "nothing")
)

// offer returns a service with all functions that the tests share.
func offer() *asterisque.Service {
	svc := asterisque.NewService()
	echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	describe.Handle(svc, func(_ context.Context, p person) (string, error) { return fmt.Sprintf("%s is %d", p.Name, p.Age), nil })
	mirror.Handle(svc, func(_ context.Context, p point) (point, error) { return point{X: p.Y, Y: p.X}, nil })
	nothing.Handle(svc, func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil })
	back.Handle(svc, func(ctx context.Context, s string) (string, error) {
		return echo.Call(ctx, asterisque.SessionOf(ctx), "*"+s+"*")
	})
	sum.Handle(svc, func(ctx context.Context, times int32, p *asterisque.Pipe[int32, int32]) (total int64, err error) {
		for n, err := range p.All(ctx) {
			if err != nil {
				return 0, err
			}
			total += int64(n)
			if err := p.Send(ctx, n*times); err != nil {
				return 0, err
			}
		}
		return total, nil
	})
	fail.Handle(svc, func(_ context.Context, code int32) (struct{}, error) {
		if code == 0 {
			return struct{}{}, errors.New("broken")
		}
		return struct{}{}, &asterisque.Abort{Code: asterisque.Code(code), Message: "as you wish", Detail: []byte("stays here")}
	})
	return svc
}

// The classic protocol has no place for metadata: the call is sent without it, as to a peer without
// the feature. Invalid metadata is rejected nevertheless.
func TestCall_Metadata(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		svc := asterisque.NewService()
		echo.Handle(svc, func(ctx context.Context, s string) (string, error) {
			return fmt.Sprint(s, len(asterisque.MetadataOf(ctx))), nil
		})
		s, _ := connect(t, form, svc, offer())
		got, err := echo.Call(background, s, "beside: ", asterisque.WithMetadata(asterisque.Metadata{"k": "v"}))
		require.NoError(t, err)
		require.Equal(t, "beside: 0", got)
		_, err = echo.Call(background, s, "", asterisque.WithMetadata(asterisque.Metadata{"k": 1}))
		require.ErrorIs(t, err, asterisque.ErrBadParams)
		require.True(t, asterisque.Repeatable(err))
	})
}

// Both sides call each other.
func TestCall_BothSides(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		dialled, accepted := connect(t, form, offer(), offer())
		for _, s := range []*asterisque.Session{dialled, accepted} {
			got, err := back.Call(background, s, "hello, 日本", asterisque.WithPriority(-3))
			require.NoError(t, err)
			require.Equal(t, "*hello, 日本*", got)
			got, err = describe.Call(background, s, person{"Ada", 36})
			require.NoError(t, err)
			require.Equal(t, "Ada is 36", got)
			p, err := mirror.Call(background, s, point{X: 1, Y: -2})
			require.NoError(t, err)
			require.Equal(t, point{X: -2, Y: 1}, p)
			_, err = nothing.Call(background, s, struct{}{})
			require.NoError(t, err)
		}
		require.Equal(t, dialled.ID(), accepted.ID(), "both know the session by the same name")
		require.Len(t, accepted.Peer().ID, 36, "a uuid")
	})
}

// A stream runs in both directions.
func TestStream_BothWays(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		for name, connect := range map[string]func(testing.TB, classic.Codec, *asterisque.Service, *asterisque.Service, ...asterisque.Option) (a, b *asterisque.Session){
			"over TCP": connect, "without any buffer": connectUnbuffered,
		} {
			t.Run(name, func(t *testing.T) {
				dialled, accepted := connect(t, form, offer(), offer())
				for _, s := range []*asterisque.Session{dialled, accepted} {
					call, err := sum.Open(background, s, 3)
					require.NoError(t, err)
					const count = 5000
					go func() {
						for n := range int32(count) {
							if err := call.Send(background, n); err != nil {
								t.Error(err)
							}
						}
						call.CloseSend()
					}()
					for n := range int32(count) {
						got, err := call.Recv(background)
						require.NoError(t, err)
						require.Equal(t, 3*n, got, "in order")
					}
					total, err := call.Result(background)
					require.NoError(t, err)
					require.EqualValues(t, count*(count-1)/2, total)
				}
			})
		}
	})
}

// Bytes stream through a pipe.
func TestStream_Bytes(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		svc := offer()
		svc.Handle(21, "copy", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
			w := stream.NewWriter(p)
			if _, err := io.Copy(w, stream.NewReader(p)); err != nil {
				return nil, err
			}
			return nil, w.Close()
		})
		s, _ := connect(t, form, svc, offer())
		p, err := s.Open(background, 21, nil)
		require.NoError(t, err)
		want := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		go func() {
			w := stream.NewWriter(p)
			if _, err := w.Write(want); err != nil {
				t.Error(err)
			}
			w.Close()
		}()
		got, err := io.ReadAll(stream.NewReader(p))
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got))
		result, err := p.Result(background)
		require.NoError(t, err)
		require.Equal(t, []byte{0}, result, "no result is null")
	})
}

// An Abort crosses with its classic code.
func TestAbort_Code(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		s, _ := connect(t, form, offer(), offer())
		for _, c := range []struct {
			what string
			send asterisque.Code // 0: an error that is no Abort
			want asterisque.Code
			text string
		}{
			{"any error", 0, codec.Failed, "broken"},
			{"a code of the application", 1404, 1404, "as you wish"},
			{"a negative one", -77, -77, "as you wish"},
			{"a code that the library reserves", classic.Code(404), classic.Code(404), "as you wish"},
			{"a code of the library", asterisque.ErrOverloaded.Code, codec.Failed, "overloaded: as you wish"},
		} {
			_, err := fail.Call(background, s, int32(c.send))
			var a *asterisque.Abort
			require.ErrorAs(t, err, &a, c.what)
			require.Equal(t, c.want, a.Code, c.what)
			require.Equal(t, c.text, a.Message, c.what)
			require.True(t, a.Remote, c.what)
			require.Nil(t, a.Detail, "which cannot be sent")
			require.False(t, asterisque.Repeatable(err), "a classic peer cannot say that it did not run")
		}
		_, err := asterisque.Func[string, string](999, "missing").Call(background, s, "x")
		require.ErrorContains(t, err, "no such function: function 999")
		_, err = asterisque.Func[int32, string](12, "describe").Call(background, s, 1)
		require.ErrorContains(t, err, "a call with 2 parameters was expected, and one with 1 came")
		_, err = asterisque.Func[string, int32](10, "echo").Call(background, s, "x")
		require.ErrorIs(t, err, asterisque.ErrBadResult)
		require.NoError(t, s.Err())
	})
}

// Parameters that are not classic values are refused locally.
func TestParams_NoValues(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		s, _ := connect(t, form, offer(), offer())
		_, err := s.Call(background, 10, []byte{0x0b, 0, 5, 'x'})
		require.ErrorIs(t, err, asterisque.ErrBadParams)
		require.True(t, asterisque.Repeatable(err), "nothing was sent")
		got, err := echo.Call(background, s, "still here")
		require.NoError(t, err)
		require.Equal(t, "still here", got)
	})
}

// A result that is not a classic value fails the call.
func TestResult_NoValue(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		svc := offer()
		svc.Handle(70, "raw", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return []byte("raw"), nil })
		s, _ := connect(t, form, svc, offer())
		_, err := s.Call(background, 70, nil)
		require.ErrorContains(t, err, "bad result: the result is not a classic value")
		_, err = echo.Call(background, s, "x")
		require.NoError(t, err)
	})
}

// Cancelling a call ends its handler.
func TestCall_Cancelled(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		svc := offer()
		running, ended := make(chan struct{}), make(chan error, 1)
		svc.Handle(70, "wait", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
			close(running)
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		})
		s, accepted := connect(t, form, svc, offer())
		ctx, cancel := context.WithCancel(background)
		go func() { <-running; cancel() }()
		_, err := s.Call(ctx, 70, nil)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, context.Canceled, <-ended)
		_, err = echo.Call(background, s, "x")
		require.NoError(t, err)
		require.NoError(t, accepted.Err())
	})
}

// The largest messages pass, and larger ones are refused.
func TestCall_LargestMessages(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		s, _ := connect(t, form, offer(), offer())
		largest := strings.Repeat("x", largestText[form])
		got, err := echo.Call(background, s, largest)
		require.NoError(t, err)
		require.Equal(t, largest, got)
		_, err = echo.Call(background, s, largest+"x")
		require.ErrorIs(t, err, asterisque.ErrTooLarge)
		require.ErrorContains(t, err, "a classic message of 65508 bytes, and 65507 is the limit")
		require.True(t, asterisque.Repeatable(err))
		for range 3 { // calls with reused ids
			_, err = echo.Call(background, s, largest+"x")
			require.ErrorIs(t, err, asterisque.ErrTooLarge)
		}
		_, err = echo.Call(background, s, largest)
		require.NoError(t, err)
		_, err = echo.Call(background, s, strings.Repeat("x", 1<<16))
		require.ErrorIs(t, err, asterisque.ErrTooLarge, "not even a classic value")
	})
}

// The largest Block passes, and a larger one ends its call.
func TestBlock_Largest(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		svc := offer()
		svc.Handle(21, "size", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
			b, err := p.Recv(ctx)
			if err != nil {
				return nil, err
			}
			return form.Append(nil, len(b.Payload))
		})
		s, _ := connect(t, form, svc, offer())
		for size, want := range map[int]error{classic.MaxPayload: nil, classic.MaxPayload + 1: asterisque.ErrTooLarge} {
			p, err := s.Open(background, 21, nil)
			require.NoError(t, err)
			require.NoError(t, p.Send(background, make([]byte, size)))
			_, err = p.Result(background)
			require.ErrorIs(t, err, want)
		}
		p, err := s.Open(background, 21, nil)
		require.NoError(t, err)
		require.ErrorIs(t, p.Send(background, make([]byte, classic.MaxMessage)), asterisque.ErrTooLarge)
		require.NoError(t, p.Send(background, nil), "the call continues")
		_, err = p.Result(background)
		require.NoError(t, err)
	})
}

func TestIDs_Reused(t *testing.T) {
	t.Parallel()
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		calls := int64(33_000) // once around
		if *testkit.Soak {
			calls = 70_000 // twice
		}
		s, _ := connect(t, form, offer(), offer())
		var callers errgroup.Group
		var next atomic.Int64
		for range 16 {
			callers.Go(func() error {
				for n := next.Add(1); n <= calls; n = next.Add(1) {
					want := fmt.Sprint(n)
					if got, err := echo.Call(background, s, want); err != nil || got != want {
						return fmt.Errorf("call %s got %q: %v", want, got, err)
					}
				}
				return nil
			})
		}
		require.NoError(t, callers.Wait())
	})
}

func TestPipes_Many(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		each := 5000 // for each side
		if *testkit.Soak {
			each = 30_000 // 60,000 of 65,533
		}
		svc := offer()
		gate := make(chan struct{})
		var arrived atomic.Int64
		svc.Handle(70, "wait", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
			arrived.Add(1)
			select {
			case <-gate:
				return nil, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		dialled, accepted := connect(t, form, svc, svc, asterisque.WithWorkers(asterisque.Workers{Session: each + 10}), asterisque.WithLimits(asterisque.Limits{Window: -1}))
		var pipes []*pipe.Pipe
		for range each {
			for _, s := range []*asterisque.Session{dialled, accepted} {
				p, err := s.Open(background, 70, nil)
				require.NoError(t, err)
				pipes = append(pipes, p)
			}
		}
		got, err := echo.Call(background, dialled, "beside them")
		require.NoError(t, err)
		require.Equal(t, "beside them", got)
		close(gate)
		for _, p := range pipes {
			_, err := p.Result(background)
			require.NoError(t, err)
		}
		require.EqualValues(t, 2*each, arrived.Load())
	})
}
