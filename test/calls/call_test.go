package calls

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// Both sides call each other at the same time.
func TestCall_BothSides(t *testing.T) {
	svc := testkit.EchoService()
	dialled, accepted := testkit.Connect(t, svc, asterisque.WithService(svc))
	var wg sync.WaitGroup
	for _, s := range []*asterisque.Session{dialled, accepted} {
		for i := range 50 {
			wg.Go(func() {
				for j := range 20 {
					want := fmt.Sprint(i, " ", j)
					got, err := testkit.Echo.Call(testkit.Background, s, want)
					if err != nil || got != want {
						t.Errorf("got %q, %v; want %q", got, err, want)
					}
				}
			})
		}
	}
	wg.Wait()
}

// A handler calls its caller back.
func TestCall_Back(t *testing.T) {
	depth := asterisque.Func[int, int](20, "depth")
	svc := asterisque.NewService()
	depth.Handle(svc, func(ctx context.Context, n int) (int, error) {
		if n == 0 {
			return 0, nil
		}
		deeper, err := depth.Call(ctx, asterisque.SessionOf(ctx), n-1)
		return deeper + 1, err
	})
	dialled, _ := testkit.Connect(t, svc, asterisque.WithService(svc))
	got, err := depth.Call(testkit.Background, dialled, 8)
	require.NoError(t, err)
	require.Equal(t, 8, got)
	require.Nil(t, asterisque.SessionOf(testkit.Background), "only a handler's context has a session")
}

// Untyped calls carry bytes unchanged.
func TestCall_UntypedBytes(t *testing.T) {
	svc := asterisque.NewService()
	svc.Handle(5, "reverse", func(_ context.Context, p *pipe.Pipe, params []byte) ([]byte, error) {
		return append([]byte{byte(p.Priority())}, params...), nil
	})
	dialled, _ := testkit.Connect(t, svc)
	for _, size := range []int{0, 1, 1000, 100_000, 4 << 20} {
		params := bytes.Repeat([]byte{7}, size)
		result, err := dialled.Call(testkit.Background, 5, params, asterisque.WithPriority(3))
		if size == 4<<20 {
			require.ErrorIs(t, err, asterisque.ErrTooLarge, "one byte more than was sent comes back")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, append([]byte{3}, params...), result)
	}
}

// The error of a handler reaches the caller.
func TestCall_HandlerError(t *testing.T) {
	fail := asterisque.Func[string, string](30, "fail")
	for _, c := range []struct {
		name string
		err  error
		want asterisque.Abort
	}{
		{"any error", errors.New("oops"), asterisque.Abort{Code: codec.Failed, Message: "oops"}},
		{"an Abort", &asterisque.Abort{Code: 1234, Message: "no money", Detail: []byte{1, 2}}, asterisque.Abort{Code: 1234, Message: "no money", Detail: []byte{1, 2}}},
		{"a wrapped Abort", fmt.Errorf("because: %w", &asterisque.Abort{Code: -5}), asterisque.Abort{Code: -5}},
		{"context canceled", context.Canceled, asterisque.Abort{Code: codec.Canceled, Message: "context canceled"}},
		{"what another call said", &asterisque.Abort{Code: codec.NoFunction, Remote: true, Ran: codec.Refused}, asterisque.Abort{Code: codec.NoFunction}},
		{"what another call did not send", &asterisque.Abort{Code: codec.Unavailable, Ran: codec.NeverSent}, asterisque.Abort{Code: codec.Unavailable}},
	} {
		t.Run(c.name, func(t *testing.T) {
			svc := asterisque.NewService()
			fail.Handle(svc, func(context.Context, string) (string, error) { return "", c.err })
			dialled, _ := testkit.Connect(t, svc)
			_, err := fail.Call(testkit.Background, dialled, "")
			var got *asterisque.Abort
			require.ErrorAs(t, err, &got)
			c.want.Remote = true
			if c.want.Message == "" {
				got.Message = ""
			}
			require.Equal(t, &c.want, got)
			require.False(t, asterisque.Repeatable(err), "the handler ran")
		})
	}
}

// A panic fails only its call.
func TestCall_Panic(t *testing.T) {
	var log testkit.Logged
	boom := asterisque.Func[string, string](31, "boom")
	svc := testkit.EchoService()
	boom.Handle(svc, func(context.Context, string) (string, error) { panic("kaboom") })
	dialled, _ := testkit.Connect(t, svc, asterisque.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	_, err := boom.Call(testkit.Background, dialled, "")
	require.ErrorIs(t, err, asterisque.ErrPanicked)
	require.NotContains(t, err.Error(), "kaboom", "what is inside stays inside")
	_, err = testkit.Echo.Call(testkit.Background, dialled, "still alive")
	require.NoError(t, err)
	require.Contains(t, log.String(), "kaboom")
	require.Contains(t, log.String(), "call_test.go", "the log has the stack")
}

// The context of a handler ends when the caller cancels.
func TestCall_CallerGivesUp(t *testing.T) {
	svc, started, ended := testkit.BlockService()
	dialled, _ := testkit.Connect(t, svc)
	ctx, cancel := context.WithCancel(testkit.Background)
	go func() { <-started; cancel() }()
	_, err := testkit.Block.Call(ctx, dialled, "")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, asterisque.ErrCanceled)
	require.False(t, asterisque.Repeatable(err))
	require.Equal(t, context.Canceled, <-ended)
}

// A deadline crosses to the handler.
func TestCall_Deadline(t *testing.T) {
	for name, call := range map[string]func(*asterisque.Session) error{
		"of the context": func(s *asterisque.Session) error {
			ctx, cancel := context.WithTimeout(testkit.Background, 50*time.Millisecond)
			defer cancel()
			_, err := testkit.Block.Call(ctx, s, "")
			return err
		},
		"as time to live": func(s *asterisque.Session) error {
			_, err := testkit.Block.Call(testkit.Background, s, "", asterisque.WithTTL(50*time.Millisecond))
			return err
		},
		"of a pipe": func(s *asterisque.Session) error {
			p, err := s.Open(testkit.Background, testkit.Block.Number(), []byte{0x60}, asterisque.WithTTL(50*time.Millisecond))
			require.NoError(t, err)
			_, err = p.Result(testkit.Background)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, started, ended := testkit.BlockService()
				dialled, _ := testkit.InMemory(t, svc)
				err := call(dialled)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, asterisque.ErrExpired)
				deadline, ok := (<-started).Deadline()
				require.True(t, ok)
				require.WithinDuration(t, time.Now(), deadline, time.Millisecond)
				require.Equal(t, context.DeadlineExceeded, <-ended)
			})
		})
	}
}

// A call that cannot be sent returns the reason.
func TestCall_CannotBeSent(t *testing.T) {
	svc, _, _ := testkit.BlockService()
	dialled, _ := testkit.Connect(t, svc)
	canceled, cancel := context.WithCancel(testkit.Background)
	cancel()
	expired, cancel := context.WithTimeout(testkit.Background, -time.Second)
	defer cancel()
	for _, c := range []struct {
		ctx  context.Context
		want error
	}{{canceled, asterisque.ErrCanceled}, {expired, asterisque.ErrExpired}} {
		_, err := testkit.Block.Call(c.ctx, dialled, "")
		require.ErrorIs(t, err, c.want)
		require.True(t, asterisque.Repeatable(err), "it was never sent")
		_, err = dialled.Open(c.ctx, 11, nil)
		require.ErrorIs(t, err, c.want)
	}
}

// A missing function is refused.
func TestCall_MissingFunction(t *testing.T) {
	dialled, _ := testkit.Connect(t, testkit.EchoService())
	_, err := testkit.Block.Call(testkit.Background, dialled, "")
	require.ErrorIs(t, err, asterisque.ErrNoFunction)
	require.True(t, asterisque.Repeatable(err), "it was refused before it ran")
	require.ErrorContains(t, err, "function 11")
}

// The error of a type mismatch names the types.
func TestCall_TypeMismatch(t *testing.T) {
	svc := testkit.EchoService()
	asterisque.Func[string, chan int](12, "channel").Handle(svc, func(context.Context, string) (chan int, error) { return make(chan int), nil })
	type span struct {
		N int `cbor:"n"`
	}
	type windowed struct {
		Window span `cbor:"window"`
	}
	asterisque.Func[windowed, string](13, "greet").Handle(svc, func(context.Context, windowed) (string, error) { return "", nil })
	dialled, _ := testkit.Connect(t, svc)
	_, err := asterisque.Func[[]int, string](10, "echo").Call(testkit.Background, dialled, []int{1})
	require.ErrorIs(t, err, asterisque.ErrBadParams)
	require.ErrorContains(t, err, `function 10 "echo": a text string was expected, and an array came`)
	require.ErrorContains(t, err, "array")
	require.True(t, asterisque.Repeatable(err), "it was refused before it ran")

	greet := asterisque.Func[map[string]any, string](13, "greet")
	_, err = greet.Call(testkit.Background, dialled, map[string]any{"window": map[string]any{"n": "many"}})
	a := new(asterisque.Abort)
	require.ErrorAs(t, err, &a)
	require.Equal(t, `function 13 "greet": at .window.n: an integer was expected, and a text string came`, a.Message)

	_, err = asterisque.Func[string, int](10, "echo").Call(testkit.Background, dialled, "text")
	require.ErrorIs(t, err, asterisque.ErrBadResult)
	require.ErrorContains(t, err, `function 10 "echo": result: an integer was expected, and a text string came`)

	_, err = asterisque.Func[func(), string](10, "echo").Call(testkit.Background, dialled, nil)
	require.ErrorIs(t, err, asterisque.ErrBadParams, "it cannot be encoded")

	_, err = asterisque.Func[string, int](12, "channel").Call(testkit.Background, dialled, "")
	require.ErrorIs(t, err, asterisque.ErrBadResult)
	_, err = testkit.Echo.Call(testkit.Background, dialled, "the session continues")
	require.NoError(t, err)
}

// A message over the limit is refused by its sender.
func TestCall_TooLarge(t *testing.T) {
	svc, long := testkit.EchoService(), strings.Repeat("x", 20_000)
	asterisque.Func[int, string](12, "long").Handle(svc, func(context.Context, int) (string, error) { return long, nil })
	svc.Handle(13, "collect", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		b, err := p.Recv(ctx)
		return b.Payload, err
	})
	dialled, _ := testkit.Connect(t, svc, asterisque.WithLimits(asterisque.Limits{MaxMessage: 10_000}))
	_, err := testkit.Echo.Call(testkit.Background, dialled, long)
	require.ErrorIs(t, err, asterisque.ErrTooLarge)
	require.True(t, asterisque.Repeatable(err))
	require.ErrorContains(t, err, "message of 20003 bytes exceeds the peer's limit of 10000")
	// some of these cost less than all the room of the peer
	for size := 10_001; size < 8*10_000; size += 1000 {
		_, err = dialled.Call(testkit.Background, 13, make([]byte, size))
		require.ErrorIs(t, err, asterisque.ErrTooLarge, size)
		_, err = dialled.Open(testkit.Background, 13, make([]byte, size))
		require.ErrorIs(t, err, asterisque.ErrTooLarge, size)
	}

	_, err = asterisque.Func[int, string](12, "long").Call(testkit.Background, dialled, 0)
	require.ErrorIs(t, err, asterisque.ErrTooLarge, "so is a result, and the caller learns it")

	p, err := dialled.Open(testkit.Background, 13, nil)
	require.NoError(t, err)
	require.ErrorIs(t, p.Send(testkit.Background, []byte(long)), asterisque.ErrTooLarge)
	require.NoError(t, p.Send(testkit.Background, []byte("short")), "the pipe continues")
	result, err := p.Result(testkit.Background)
	require.NoError(t, err)
	require.Equal(t, "short", string(result))
}

// Calls work with every value codec.
func TestCall_EveryCodec(t *testing.T) {
	for _, values := range []codec.Values{codec.CBOR, codec.JSON, codec.Raw} {
		t.Run(values.Name(), func(t *testing.T) {
			dialled, _ := testkit.Connect(t, testkit.EchoService(), asterisque.WithCodecs(values))
			got, err := testkit.Echo.Call(testkit.Background, dialled, "hello")
			require.NoError(t, err)
			require.Equal(t, "hello", got)
		})
	}
}

// TestCall_CanceledOnFullWire cancels many running calls whose Closes have to wait, while their
// place is used for later calls.
func TestCall_CanceledOnFullWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, s := testkit.StuckPeer(t)
		const calls = 50
		ctx, cancel := context.WithCancel(testkit.Background)
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() { s.Call(ctx, 7, nil) })
		}
		synctest.Wait()
		testkit.Congest(t, s)
		cancel()
		wg.Wait()
		later, end := context.WithCancel(testkit.Background)
		for range calls {
			wg.Go(func() { s.Call(later, 8, nil) })
		}
		synctest.Wait()
		var opened, closed []uint64
		for len(closed) < calls {
			frame := peer.Frame()
			if m, err := message.ParseOpen(frame); err == nil && m.Function == 7 {
				opened = append(opened, m.Pipe)
			}
			if m, err := message.ParseClose(frame); err == nil {
				require.Equal(t, codec.Canceled, m.Abort.Code)
				closed = append(closed, m.Pipe)
			}
		}
		require.ElementsMatch(t, opened, closed)
		end()
		wg.Wait()
	})
}
