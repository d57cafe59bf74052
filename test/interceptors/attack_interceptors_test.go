package interceptors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// misbehave panics, ends its goroutine, or returns an error whose text panics, each in one of 60
// calls.
func misbehave() error {
	switch rand.IntN(60) {
	case 0:
		panic("as it likes")
	case 1:
		runtime.Goexit()
	case 2:
		return mute{}
	}
	return nil
}

// mute is an error without a useful text.
type mute struct{}

func (mute) Error() string {
	if rand.IntN(2) == 0 {
		runtime.Goexit()
	}
	panic("mute")
}

// unruly is an interceptor that performs random permitted actions, and many forbidden ones.
func unruly(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
	if err := misbehave(); err != nil {
		return err
	}
	if rand.IntN(2) == 0 {
		seen := func(b []byte) ([]byte, error) { return b, misbehave() }
		c.WrapBlocks(asterisque.Blocks{Send: seen, Recv: seen, End: func(result []byte, err error) ([]byte, error) {
			return result, errors.Join(err, misbehave())
		}})
	}
	switch rand.IntN(15) {
	case 0:
		c.SetRawParams(make([]byte, rand.IntN(100_000)))
	case 1:
		c.SetParams(c.Params())
	case 2:
		c.SetRawResult(make([]byte, rand.IntN(1000)))
	case 3:
		return c.Refuse(asterisque.ErrOverloaded)
	case 4:
		if s := c.Session(); s != nil {
			testkit.Echo.Call(ctx, s, "within", asterisque.WithTTL(time.Second))
		}
	case 5:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(2000))*time.Microsecond)
		defer cancel()
	}
	var err error
	for range 1 + rand.IntN(5)/4 {
		over := make(chan struct{})
		go func() {
			defer close(over)
			err = next(ctx, c)
		}()
		<-over
	}
	c.Params()
	c.Result()
	c.RawResult()
	switch rand.IntN(15) {
	case 0:
		return misbehave()
	case 1:
		return fmt.Errorf("wrapped: %w", &asterisque.Abort{Code: codec.Overloaded, Ran: codec.Refused})
	case 2:
		c.SetResult(c.Result())
	case 3:
		c.SetRawResult([]byte("\x60"))
	}
	return err
}

// TestAttackInterceptors_Any puts misbehaving interceptors around calls of every kind, on both
// sides, while the Wires die: each call ends, has its own result or none, and leaves nothing
// behind.
func TestAttackInterceptors_Any(t *testing.T) {
	rounds := 60
	if *testkit.Soak {
		rounds = 2000
	}
	svc := testkit.SumService()
	same := func(_ context.Context, s string) (string, error) { return s, nil }
	testkit.Echo.Handle(svc, same, asterisque.WithFunctionInterceptors(unruly))
	asterisque.Func[string, string](11, "keyed").Handle(svc, same, asterisque.WithKey(func(s string) int { return len(s) }), asterisque.WithConcurrency(2))
	asterisque.Func[string, string](12, "inline").Handle(svc, same, asterisque.WithInline())
	svc.HandleUnknown(func(_ context.Context, _ *pipe.Pipe, b []byte) ([]byte, error) { return b, nil }, asterisque.WithBorrowedParams())
	for name, opts := range map[string][]asterisque.Option{"sessions end": nil, "sessions are resumed": {asterisque.WithResume(asterisque.Resume{For: time.Minute})}} {
		t.Run(name, func(t *testing.T) {
			conn, cut := testkit.Lasting(t, svc, append(opts, asterisque.WithOutboundInterceptors(unruly), asterisque.WithInboundInterceptors(unruly),
				asterisque.WithLogger(slog.New(slog.DiscardHandler)), asterisque.WithMaxOutstanding(10, 4))...)
			var wg sync.WaitGroup
			for i := range 10 {
				wg.Go(func() {
					for n := range rounds {
						over := make(chan struct{})
						go func() { // which an interceptor may end
							defer close(over)
							unrulyCall(t, conn, strings.Repeat(fmt.Sprintf("%d of %d, ", n, i), 1+rand.IntN(300)))
						}()
						<-over
						if i+n%20 == 0 {
							cut.Cut()
						}
					}
				})
			}
			wg.Wait()
			testkit.Settled(t, func() bool {
				s := conn.Session()
				return s != nil && s.Err() == nil && testkit.Busy(s) == "" && s.Outstanding(10).Calls == 0
			})
		})
	}
}

// unrulyCall makes one call of any kind.
func unrulyCall(t *testing.T, on asterisque.Caller, text string) {
	ctx, cancel := context.WithTimeout(testkit.Background, time.Duration(1+rand.IntN(300))*time.Millisecond)
	defer cancel()
	var opts []asterisque.CallOption
	for _, o := range []asterisque.CallOption{
		asterisque.WithDurable(), asterisque.WithCallInterceptors(unruly), asterisque.WithTTL(time.Duration(1+rand.IntN(100)) * time.Millisecond),
		asterisque.WithMetadata(asterisque.Metadata{"a": "b"}), asterisque.WithResultBuffer(make([]byte, 1000)),
	} {
		if rand.IntN(3) == 0 {
			opts = append(opts, o)
		}
	}
	if rand.IntN(3) == 0 {
		on = asterisque.Intercept(on, unruly)
	}
	switch function := uint16(10 + rand.IntN(5)); function {
	case 13:
		asterisque.CallOn(ctx, on, 13, []byte(text), opts...)
	case 14:
		call, err := testkit.Sums.Open(ctx, on, testkit.Window{N: 1}, opts...)
		if err != nil {
			return
		}
		defer call.Abort(nil)
		for i := range 5 {
			call.Send(ctx, i)
			call.Recv(ctx)
		}
		call.CloseSend()
		call.Result(ctx)
	default:
		got, err := asterisque.Func[string, string](function, "").Call(ctx, on, text, opts...)
		if err == nil && got != text && got != "" {
			t.Errorf("the result of another call: %q", got)
		}
	}
}
