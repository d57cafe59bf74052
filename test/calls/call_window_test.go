package calls

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// TestCallWindow_BytesOfCallsThatWait requires that the encoded parameters of waiting callers count
// until the call is sent or given up.
func TestCallWindow_BytesOfCallsThatWait(t *testing.T) {
	const callers, size = 100, 10_000
	synctest.Test(t, func(t *testing.T) {
		svc, h := testkit.HoldService()
		dialled, _ := testkit.InMemory(t, svc, asterisque.WithMaxOutstanding(testkit.Held.Number(), 1))
		ctx, cancel := context.WithCancel(testkit.Background)
		var wg sync.WaitGroup
		testkit.Calls(&wg, callers, func(int) { testkit.Held.Call(ctx, dialled, strings.Repeat("x", size)) })
		for waiting := callers - 1; waiting >= callers-3; waiting-- {
			o := dialled.Outstanding(testkit.Held.Number())
			require.Equal(t, waiting, o.Waiting)
			w := dialled.Stats().WaitPlace
			require.Equal(t, waiting, w.Now)
			require.GreaterOrEqual(t, w.Bytes, waiting*size)
			require.Less(t, w.Bytes, waiting*(size+1000))
			h.End <- struct{}{}
			synctest.Wait()
		}
		cancel()
		close(h.End)
		wg.Wait()
		require.Zero(t, dialled.Stats().WaitPlace.Bytes)
	})
}

// Calls beyond the window of their function wait in order, and block no other function.
func TestFunctionWindow_InOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, h := testkit.HoldService()
		dialled, accepted := testkit.InMemory(t, svc, asterisque.WithMaxOutstanding(testkit.Held.Number(), 2))
		var wg sync.WaitGroup
		testkit.Calls(&wg, 6, func(i int) { testkit.Held.Call(testkit.Background, dialled, fmt.Sprint(i)) })
		testkit.Calls(&wg, 1, func(int) { testkit.Held.Call(testkit.Background, dialled, "front", asterisque.WithPriority(1)) })
		o := dialled.Outstanding(testkit.Held.Number())
		require.Equal(t, asterisque.Outstanding{Window: 2, Calls: 2, Waiting: 5}, o)
		require.True(t, dialled.Outstanding(testkit.Held.Number()).Full())
		require.Equal(t, 2, accepted.Stats().Running+accepted.Stats().Waiting, "what waits here has not been sent")
		require.EqualValues(t, 2, dialled.Stats().Made)
		_, err := testkit.Echo.Call(testkit.Background, dialled, "another function")
		require.NoError(t, err)
		require.Equal(t, asterisque.Outstanding{}, dialled.Outstanding(testkit.Echo.Number()), "it has no window")
		require.False(t, dialled.Outstanding(testkit.Echo.Number()).Full())
		require.ElementsMatch(t, []string{"0", "1"}, h.Order())
		for _, next := range []string{"front", "2", "3", "4", "5"} {
			h.End <- struct{}{}
			synctest.Wait()
			require.Equal(t, []string{next}, h.Order(), "as one ends, the next one goes at once")
		}
		close(h.End)
		wg.Wait()
		require.Equal(t, asterisque.Outstanding{Window: 2}, dialled.Outstanding(testkit.Held.Number()))
		require.False(t, dialled.Outstanding(testkit.Held.Number()).Full())
		require.EqualValues(t, 2, h.Most.Load())
		testkit.WantIdle(t, dialled, accepted)
	})
}

// Each session has its own window.
func TestWindow_PerSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, h := testkit.HoldService()
		here, there := asterisque.NewNode(asterisque.WithMaxOutstanding(testkit.Held.Number(), 1)), asterisque.NewNode(asterisque.WithService(svc))
		defer here.Close()
		defer there.Close()
		var wg sync.WaitGroup
		for range 3 {
			s, _ := asterisquetest.ConnectNodes(t, here, there)
			for range 3 {
				wg.Go(func() { testkit.Held.Call(testkit.Background, s, "") })
			}
		}
		synctest.Wait()
		require.EqualValues(t, 3, h.Now.Load())
		close(h.End)
		wg.Wait()
		require.EqualValues(t, 3, h.Most.Load())
	})
}

// The wait for the window of a function ends.
func TestFunctionWindow_WaitEnds(t *testing.T) {
	ways := map[string]func(ctx context.Context, s *asterisque.Session, opts ...asterisque.CallOption) error{
		"Call": func(ctx context.Context, s *asterisque.Session, opts ...asterisque.CallOption) error {
			_, err := s.Call(ctx, 60, nil, opts...)
			return err
		},
		"typed": func(ctx context.Context, s *asterisque.Session, opts ...asterisque.CallOption) error {
			_, err := testkit.Held.Call(ctx, s, "", opts...)
			return err
		},
		"Open": func(ctx context.Context, s *asterisque.Session, opts ...asterisque.CallOption) error {
			_, err := s.Open(ctx, 60, nil, opts...)
			return err
		},
	}
	for name, call := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, h := testkit.HoldService()
				dialled, accepted := testkit.InMemory(t, svc, asterisque.WithMaxOutstanding(60, 1))
				var wg sync.WaitGroup
				testkit.Calls(&wg, 1, func(int) { testkit.Held.Call(testkit.Background, dialled, "") })

				ctx, cancel := context.WithCancel(testkit.Background)
				testkit.Calls(&wg, 1, func(int) {
					if err := call(ctx, dialled); !asterisque.Repeatable(err) || !strings.Contains(err.Error(), "canceled") {
						t.Errorf("given up: %v", err)
					}
				})
				cancel()
				synctest.Wait()

				begin := time.Now()
				deadline, cancel := context.WithTimeout(testkit.Background, time.Second)
				defer cancel()
				for _, err := range []error{call(deadline, dialled), call(testkit.Background, dialled, asterisque.WithTTL(time.Second))} {
					require.ErrorIs(t, err, asterisque.ErrExpired)
					require.True(t, asterisque.Repeatable(err), "it was never sent")
				}
				require.Equal(t, 2*time.Second, time.Since(begin))
				require.Equal(t, asterisque.Outstanding{Window: 1, Calls: 1}, dialled.Outstanding(60))

				testkit.Calls(&wg, 1, func(int) {
					if err := call(testkit.Background, dialled); !asterisque.Repeatable(err) || !strings.Contains(err.Error(), "session closed") {
						t.Errorf("session closed: %v", err)
					}
				})
				dialled.Close()
				close(h.End)
				wg.Wait()
				synctest.Wait()
				require.Equal(t, asterisque.Outstanding{Window: 1}, dialled.Outstanding(60))
				testkit.WantIdle(t, dialled, accepted)
			})
		})
	}
}

// TestWindow_TTLWhileWaiting counts the waits for the windows of the function and of the session as
// a part of the time to live.
func TestWindow_TTLWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		svc.Handle(50, "stream", testkit.WaitForContext)
		dialled, _ := testkit.InMemory(t, svc, asterisque.WithMaxOutstanding(50, 1))
		first, err := dialled.Open(testkit.Background, 50, nil)
		require.NoError(t, err)
		begin := time.Now()
		time.AfterFunc(700*time.Millisecond, func() { first.Abort(nil) })
		second, err := dialled.Open(testkit.Background, 50, nil, asterisque.WithTTL(time.Second))
		require.NoError(t, err)
		require.Equal(t, 700*time.Millisecond, time.Since(begin))
		_, err = second.Result(testkit.Background)
		require.ErrorIs(t, err, asterisque.ErrExpired)
		require.Equal(t, time.Second, time.Since(begin))
	})
}

// A stream holds the window of its function until its end.
func TestFunctionWindow_OfStream(t *testing.T) {
	for name, end := range map[string]func(*asterisque.Session, *pipe.Pipe, context.CancelFunc){
		"by its result": func(_ *asterisque.Session, p *pipe.Pipe, _ context.CancelFunc) {
			p.CloseSend()
			p.Result(testkit.Background)
		},
		"by Abort":         func(_ *asterisque.Session, p *pipe.Pipe, _ context.CancelFunc) { p.Abort(nil) },
		"by its context":   func(_ *asterisque.Session, _ *pipe.Pipe, cancel context.CancelFunc) { cancel() },
		"with the session": func(s *asterisque.Session, _ *pipe.Pipe, _ context.CancelFunc) { s.Close() },
		"by the other side": func(_ *asterisque.Session, p *pipe.Pipe, _ context.CancelFunc) {
			p.Send(testkit.Background, []byte("fail"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc := asterisque.NewService()
				svc.Handle(50, "stream", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
					b, err := p.Recv(ctx)
					if string(b.Payload) == "fail" {
						return nil, testkit.ErrBroken
					}
					if err != nil && ctx.Err() != nil {
						return nil, err
					}
					return nil, nil
				})
				dialled, accepted := testkit.InMemory(t, svc, asterisque.WithMaxOutstanding(50, 1))
				ctx, cancel := context.WithCancel(testkit.Background)
				defer cancel()
				p, err := dialled.Open(ctx, 50, nil)
				require.NoError(t, err)
				synctest.Wait()
				require.Equal(t, asterisque.Outstanding{Window: 1, Calls: 1}, dialled.Outstanding(50))
				end(dialled, p, cancel)
				p.Abort(nil) // once more, which gives nothing back twice
				synctest.Wait()
				require.Equal(t, asterisque.Outstanding{Window: 1}, dialled.Outstanding(50))
				testkit.WantIdle(t, dialled, accepted)
			})
		})
	}
}

// A call that cannot be sent releases the window of its function.
func TestFunctionWindow_Unsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dialled, _ := testkit.InMemory(t, testkit.EchoService(), asterisque.WithMaxOutstanding(testkit.Echo.Number(), 1))
		for range 3 {
			_, err := testkit.Echo.Call(testkit.Background, dialled, strings.Repeat("x", 5<<20))
			require.ErrorIs(t, err, asterisque.ErrTooLarge)
			_, err = dialled.Open(testkit.Background, testkit.Echo.Number(), make([]byte, 5<<20))
			require.ErrorIs(t, err, asterisque.ErrTooLarge)
			_, err = asterisque.Func[chan int, string](testkit.Echo.Number(), "").Call(testkit.Background, dialled, nil)
			require.ErrorIs(t, err, asterisque.ErrBadParams)
		}
		require.Equal(t, asterisque.Outstanding{Window: 1}, dialled.Outstanding(testkit.Echo.Number()))
		_, err := testkit.Echo.Call(testkit.Background, dialled, "")
		require.NoError(t, err)
	})
}

// TestFunctionWindow_RandomEnds cancels calls at every moment, even when their turn comes: the
// window stays correct.
func TestFunctionWindow_RandomEnds(t *testing.T) {
	const window = 3
	svc, h := testkit.HoldService()
	close(h.End)
	dialled, accepted := testkit.Connect(t, svc, asterisque.WithMaxOutstanding(testkit.Held.Number(), window))
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 1))
			for range 50 {
				ctx, cancel := context.WithTimeout(testkit.Background, time.Duration(rnd.IntN(2000))*time.Microsecond)
				if rnd.IntN(2) == 0 {
					testkit.Held.Call(ctx, dialled, "", asterisque.WithPriority(1))
				} else if p, err := dialled.Open(ctx, testkit.Held.Number(), []byte{0x60}); err == nil {
					p.Result(ctx)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	testkit.WantIdle(t, dialled, accepted)
	require.Eventually(t, func() bool {
		return dialled.Outstanding(testkit.Held.Number()) == asterisque.Outstanding{Window: window}
	}, testkit.Patience, time.Millisecond)
	_, err := testkit.Held.Call(testkit.Background, dialled, "")
	require.NoError(t, err)
}

// Nested calls of one function need no window of their own.
func TestFunctionWindow_Nested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		testkit.Nested.Handle(svc, nestedHandler)
		opts := []asterisque.Option{asterisque.WithService(svc), asterisque.WithMaxOutstanding(testkit.Nested.Number(), 1)}
		dialled, accepted := testkit.InMemory(t, svc, opts...)
		ctx, cancel := context.WithTimeout(testkit.Background, time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if got, err := testkit.Nested.Call(ctx, dialled, 9); err != nil || got != 9 {
					t.Errorf("got %d, %v", got, err)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		for _, s := range []*asterisque.Session{dialled, accepted} {
			require.Equal(t, asterisque.Outstanding{Window: 1}, s.Outstanding(testkit.Nested.Number()))
			testkit.WantIdle(t, s)
		}
	})
}

// nestedHandler is the handler of nested.
func nestedHandler(ctx context.Context, n int) (int, error) {
	if n == 0 {
		return 0, nil
	}
	deeper, err := testkit.Nested.Call(ctx, asterisque.SessionOf(ctx), n-1)
	return deeper + 1, err
}
