package interceptors

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// again calls next for the given number of attempts, regardless of their outcome.
func again(attempts int) asterisque.Interceptor {
	return func(ctx context.Context, c *asterisque.Call, next asterisque.Next) (err error) {
		for range attempts {
			err = next(ctx, c)
		}
		return err
	}
}

// TestInterceptor_ChangesOnce calls next again through interceptors that change the parameters: the
// change is not repeated.
func TestInterceptor_ChangesOnce(t *testing.T) {
	var seen []int
	svc := asterisque.NewService()
	testkit.Work.Handle(svc, func(_ context.Context, n int) (int, error) { seen = append(seen, n); return n, nil })
	changes := map[string]asterisque.Interceptor{
		"value": func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			if err := c.SetParams(c.Params().(int) + 1); err != nil {
				return err
			}
			return next(ctx, c)
		},
		"bytes": func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			raw, err := c.RawParams()
			if err != nil {
				return err
			}
			c.SetRawParams([]byte{raw[0] + 1})
			return next(ctx, c)
		},
		"bytes, and their value is looked at": func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			c.SetRawParams([]byte{byte(c.Params().(int)) + 1})
			c.Params()
			return next(ctx, c)
		},
	}
	for what, change := range changes {
		t.Run(what, func(t *testing.T) {
			seen = nil
			var after any
			looks := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
				err := next(ctx, c)
				after = c.Params()
				return err
			}
			dialled, _ := testkit.Connect(t, svc)
			for name, call := range map[string]func() error{
				"typed": func() error {
					_, err := testkit.Work.Call(testkit.Background, asterisque.Intercept(dialled, looks, again(3), change, change), 5)
					require.Equal(t, 5, after, "the outer interceptor keeps its own parameters")
					return err
				},
				"untyped": func() error {
					if what != "bytes" {
						return nil
					}
					_, err := asterisque.CallOn(testkit.Background, asterisque.Intercept(dialled, again(3), change, change), testkit.Work.Number(), []byte{5})
					return err
				},
			} {
				require.NoError(t, call(), name)
				for _, n := range seen {
					require.Equal(t, 7, n, name)
				}
			}
			require.GreaterOrEqual(t, len(seen), 3)

			seen = nil
			served, _ := testkit.Connect(t, svc, asterisque.WithInboundInterceptors(countsAttempts, again(3), change, change, refusesTwice))
			_, err := testkit.Work.Call(testkit.Background, served, 5)
			require.NoError(t, err)
			require.Equal(t, []int{7}, seen, "likewise where a call is served")
		})
	}
}

// flips inverts all bits of the Blocks of a call, and counts the outcomes.
func flips(outcomes *atomic.Int64) asterisque.Interceptor {
	flip := func(b []byte) ([]byte, error) {
		b = bytes.Clone(b)
		for i := range b {
			b[i] = ^b[i]
		}
		return b, nil
	}
	return func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		if !c.Blocks() {
			return next(ctx, c)
		}
		err := c.WrapBlocks(asterisque.Blocks{Send: flip, Recv: flip, End: func(result []byte, err error) ([]byte, error) {
			outcomes.Add(1)
			return result, err
		}})
		if err != nil {
			return err
		}
		return next(ctx, c)
	}
}

// TestAround_BlocksOnce calls next again, on the same session and on another one, through
// interceptors that put code around Blocks: the code is there once.
func TestAround_BlocksOnce(t *testing.T) {
	var outcomes, outer, foreign atomic.Int64
	here := testkit.NewNode(t, asterisque.WithOutboundInterceptors(flips(&outcomes)))
	there := testkit.NewNode(t, asterisque.WithService(testkit.SumService()), asterisque.WithInboundInterceptors(countsAttempts, again(3), flips(&foreign), refusesTwice))
	dead, _ := testkit.ConnectNodes(t, here, testkit.NewNode(t))
	dead.Close()
	dialled, accepted := testkit.ConnectNodes(t, here, there)
	for name, on := range map[string]struct {
		asterisque.Caller
		opened int64 // attempts with a pipe
	}{
		"once":                       {dialled, 1},
		"after one that failed":      {otherwise(dead, dead, dialled), 1},
		"after some that were open":  {asterisque.Intercept(dialled, again(3)), 3},
		"both":                       {asterisque.Intercept(otherwise(dead, dialled), again(2)), 2},
		"around it, and within that": {asterisque.Intercept(dialled, flips(&outer), again(2), flips(&outcomes), flips(&outcomes), flips(&outcomes)), 0},
	} {
		t.Run(name, func(t *testing.T) {
			outcomes.Store(0)
			call, err := testkit.Sums.Open(testkit.Background, on, testkit.Window{N: 1})
			require.NoError(t, err)
			require.NoError(t, call.Send(testkit.Background, 7))
			got, err := call.Recv(testkit.Background)
			require.NoError(t, err)
			require.Equal(t, 7, got)
			require.NoError(t, call.CloseSend())
			_, err = call.Result(testkit.Background)
			require.NoError(t, err)
			testkit.WantIdle(t, dialled, accepted)
			if on.opened > 0 {
				testkit.Settled(t, func() bool { return outcomes.Load() == on.opened })
			} else {
				testkit.Settled(t, func() bool { return outcomes.Load() == 8 })
				require.EqualValues(t, 1, outer.Load(), "one call of next has one outcome")
			}
		})
	}
	require.Zero(t, foreign.Load())
}

// attempts is the context key of the number of attempts of a served call.
type attempts struct{}

// countsAttempts runs outside refusesTwice. Calls may run concurrently.
func countsAttempts(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
	return next(context.WithValue(ctx, attempts{}, new(int)), c)
}

// refusesTwice refuses the first two of each three attempts.
func refusesTwice(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
	n := ctx.Value(attempts{}).(*int)
	if *n++; *n%3 != 0 {
		return c.Refuse(asterisque.ErrOverloaded)
	}
	return next(ctx, c)
}

// TestAttempts_EncodedEach requires that each attempt is encoded with the codec of its session.
func TestAttempts_EncodedEach(t *testing.T) {
	svc := testkit.SumService()
	testkit.Echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	looks := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		if _, err := c.RawParams(); err != nil {
			return err
		}
		return next(ctx, c)
	}
	option := asterisque.WithOutboundInterceptors(looks)
	dead, _ := testkit.Connect(t, svc, option)
	dead.Close()
	dialled, accepted := testkit.Connect(t, svc, option, asterisque.WithCodecs(codec.JSON))
	got, err := testkit.Echo.Call(testkit.Background, otherwise(dead, dialled), "a")
	require.NoError(t, err)
	require.Equal(t, "a", got)
	call, err := testkit.Sums.Open(testkit.Background, otherwise(dead, dialled), testkit.Window{N: 1})
	require.NoError(t, err)
	require.NoError(t, call.Send(testkit.Background, 1))
	n, err := call.Recv(testkit.Background)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	call.Abort(nil)
	testkit.WantIdle(t, dialled, accepted)
}

// TestAttempts_AfterRun has an interceptor that fails after the call, with a peer's refusal because
// of a shutdown, and requires that the connection does not retry the call.
func TestAttempts_AfterRun(t *testing.T) {
	var ran atomic.Int64
	svc := asterisque.NewService()
	svc.Handle(50, "shuts down", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
		ran.Add(1)
		return nil, asterisque.SessionOf(ctx).Shutdown(ctx)
	})
	audits := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		if err := next(ctx, c); err != nil || c.Function() != 50 {
			return err
		}
		for {
			if _, err := c.Session().Call(ctx, 51, nil); asterisque.Repeatable(err) && !isCode(err, codec.NoFunction) {
				return err
			}
		}
	}
	conn, _ := testkit.Lasting(t, svc, asterisque.WithOutboundInterceptors(audits))
	_, err := conn.Call(testkit.Background, 50, nil)
	require.Error(t, err)
	require.False(t, asterisque.Repeatable(err))
	require.EqualValues(t, 1, ran.Load())
}

func isCode(err error, code asterisque.Code) bool {
	var a *asterisque.Abort
	return testkit.AsAbort(err, &a) && a.Code == code
}

// TestRefusal_OfDurableCall covers interceptors that refuse with ErrUnavailable, on either side,
// without a shutdown.
func TestRefusal_OfDurableCall(t *testing.T) {
	refuses := func(_ context.Context, c *asterisque.Call, _ asterisque.Next) error {
		return c.Refuse(asterisque.ErrUnavailable.Withf("maintenance"))
	}
	for side, option := range map[string]asterisque.Option{"made": asterisque.WithOutboundInterceptors(refuses), "served": asterisque.WithInboundInterceptors(refuses)} {
		t.Run(side, func(t *testing.T) {
			conn, _ := testkit.Lasting(t, testkit.EchoService(), option)
			ctx, cancel := context.WithTimeout(testkit.Background, testkit.Patience)
			defer cancel()
			_, err := testkit.Echo.Call(ctx, conn, "a", asterisque.WithDurable())
			require.ErrorContains(t, err, "maintenance")
			_, err = testkit.Echo.Call(ctx, conn, "a")
			require.ErrorContains(t, err, "maintenance")
		})
	}
}

// TestRefusal_AfterAttempts: a refusal after attempts that did not run says that the call did not
// run. A choice among several Callers needs that.
func TestRefusal_AfterAttempts(t *testing.T) {
	dead, _ := testkit.Connect(t, testkit.EchoService())
	dead.Close()
	live, _ := testkit.Connect(t, testkit.EchoService())
	for name, c := range map[string]struct {
		on         []asterisque.Caller
		repeatable bool
	}{
		"none was sent":    {[]asterisque.Caller{dead, dead}, true},
		"one may have run": {[]asterisque.Caller{dead, live, dead}, false},
	} {
		all := invoker(func(ctx context.Context, call *asterisque.Call) error {
			for _, on := range c.on {
				on.Invoke(ctx, call)
			}
			return call.Refuse(fmt.Errorf("all of %d have failed", len(c.on)))
		})
		_, err := testkit.Echo.Call(testkit.Background, all, "a")
		require.ErrorContains(t, err, "have failed", name)
		require.Equal(t, c.repeatable, asterisque.Repeatable(err), name)
	}
}

// TestAttempts_TTLOfStream requires that the time to live counts from the start of the call, with
// slow interceptors and failed attempts.
func TestAttempts_TTLOfStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		var left atomic.Int64
		svc.Handle(50, "waits", func(ctx context.Context, p *pipe.Pipe, params []byte) ([]byte, error) {
			at, _ := ctx.Deadline()
			left.Store(int64(time.Until(at)))
			return testkit.WaitForContext(ctx, p, params)
		})
		dialled, accepted := testkit.InMemory(t, svc)
		slow := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			fakeclock.Sleep(time.Second) // as a limit on the rate does
			return next(ctx, c)
		}
		begin := time.Now()
		p, err := asterisque.OpenOn(testkit.Background, asterisque.Intercept(dialled, again(3), slow), 50, nil, asterisque.WithTTL(5*time.Second))
		require.NoError(t, err)
		<-p.Done()
		require.ErrorIs(t, p.Err(), asterisque.ErrExpired)
		require.Equal(t, 5*time.Second, time.Since(begin))
		require.Equal(t, 2*time.Second, time.Duration(left.Load()).Round(time.Second))

		_, err = asterisque.OpenOn(testkit.Background, asterisque.Intercept(dialled, slow), 50, nil, asterisque.WithTTL(time.Second/2))
		require.ErrorIs(t, err, asterisque.ErrExpired)
		require.True(t, asterisque.Repeatable(err))
		testkit.WantIdle(t, dialled, accepted)
	})
}
