package asterisque_test

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
	"github.com/asterisque-go/asterisque/pipe"
)

// again calls on until there are so many attempts, whatever comes of them.
func again(attempts int) asterisque.Interceptor {
	return func(ctx context.Context, c *asterisque.Call, next asterisque.Next) (err error) {
		for range attempts {
			err = next(ctx, c)
		}
		return err
	}
}

// TestWhatAnInterceptorChangesIsNotChangedTwice calls on again through interceptors that change the
// parameters.
func TestWhatAnInterceptorChangesIsNotChangedTwice(t *testing.T) {
	var seen []int
	svc := asterisque.NewService()
	work.Handle(svc, func(_ context.Context, n int) (int, error) { seen = append(seen, n); return n, nil })
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
			dialled, _ := connect(t, svc)
			for name, call := range map[string]func() error{
				"typed": func() error {
					_, err := work.Call(background, asterisque.Intercept(dialled, looks, again(3), change, change), 5)
					require.Equal(t, 5, after, "whoever is around it has what it passed on")
					return err
				},
				"untyped": func() error {
					if what != "bytes" {
						return nil
					}
					_, err := asterisque.CallOn(background, asterisque.Intercept(dialled, again(3), change, change), work.Number(), []byte{5})
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
			served, _ := connect(t, svc, asterisque.WithServedInterceptors(again(3), change, change, refusesTwice()))
			_, err := work.Call(background, served, 5)
			require.NoError(t, err)
			require.Equal(t, []int{7}, seen, "likewise where a call is served")
		})
	}
}

// flips puts code around the Blocks of a call that flips all bits, and notes the outcomes.
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

// TestWhatStandsAroundBlocksDoesSoOnce calls on again, on the same session and on another one,
// through interceptors that put code around Blocks.
func TestWhatStandsAroundBlocksDoesSoOnce(t *testing.T) {
	var outcomes, outer, foreign atomic.Int64
	here := newNode(t, asterisque.WithMadeInterceptors(flips(&outcomes)))
	there := newNode(t, asterisque.WithService(sumService()), asterisque.WithServedInterceptors(again(3), flips(&foreign), refusesTwice()))
	dead, _ := connectNodes(t, here, newNode(t))
	dead.Close()
	dialled, accepted := connectNodes(t, here, there)
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
			call, err := sums.Open(background, on, window{N: 1})
			require.NoError(t, err)
			require.NoError(t, call.Send(background, 7))
			got, err := call.Recv(background)
			require.NoError(t, err)
			require.Equal(t, 7, got)
			require.NoError(t, call.CloseSend())
			_, err = call.Result(background)
			require.NoError(t, err)
			wantIdle(t, dialled, accepted)
			if on.opened > 0 {
				settled(t, func() bool { return outcomes.Load() == on.opened })
			} else {
				settled(t, func() bool { return outcomes.Load() == 8 })
				require.EqualValues(t, 1, outer.Load(), "whoever has called on once is told one outcome")
			}
		})
	}
	require.Zero(t, foreign.Load())
}

// refusesTwice refuses two attempts of three.
func refusesTwice() asterisque.Interceptor {
	attempts := 0
	return func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		if attempts++; attempts%3 != 0 {
			return c.Refuse(asterisque.ErrOverloaded)
		}
		return next(ctx, c)
	}
}

// TestEachAttemptIsEncodedAsItsSessionDoes has sessions that have agreed on different codecs.
func TestEachAttemptIsEncodedAsItsSessionDoes(t *testing.T) {
	svc := sumService()
	echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	looks := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		if _, err := c.RawParams(); err != nil {
			return err
		}
		return next(ctx, c)
	}
	option := asterisque.WithMadeInterceptors(looks)
	dead, _ := connect(t, svc, option)
	dead.Close()
	dialled, accepted := connect(t, svc, option, asterisque.WithCodecs(codec.JSON))
	got, err := echo.Call(background, otherwise(dead, dialled), "a")
	require.NoError(t, err)
	require.Equal(t, "a", got)
	call, err := sums.Open(background, otherwise(dead, dialled), window{N: 1})
	require.NoError(t, err)
	require.NoError(t, call.Send(background, 1))
	n, err := call.Recv(background)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	call.Abort(nil)
	wantIdle(t, dialled, accepted)
}

// TestACallThatHasRunIsNotMadeAgainByAConnection has an interceptor that fails after the call, as a
// call fails that the peer refuses because it shuts the session down.
func TestACallThatHasRunIsNotMadeAgainByAConnection(t *testing.T) {
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
	conn, _ := lasting(t, svc, asterisque.WithMadeInterceptors(audits))
	_, err := conn.Call(background, 50, nil)
	require.Error(t, err)
	require.False(t, asterisque.Repeatable(err))
	require.EqualValues(t, 1, ran.Load())
}

func isCode(err error, code asterisque.Code) bool {
	var a *asterisque.Abort
	return asAbort(err, &a) && a.Code == code
}

// TestARefusalOfADurableCallIsItsAnswer is for interceptors that refuse with ErrUnavailable, on
// either side, while nobody shuts anything down.
func TestARefusalOfADurableCallIsItsAnswer(t *testing.T) {
	refuses := func(_ context.Context, c *asterisque.Call, _ asterisque.Next) error {
		return c.Refuse(asterisque.ErrUnavailable.Withf("maintenance"))
	}
	for side, option := range map[string]asterisque.Option{"made": asterisque.WithMadeInterceptors(refuses), "served": asterisque.WithServedInterceptors(refuses)} {
		t.Run(side, func(t *testing.T) {
			conn, _ := lasting(t, echoService(), option)
			ctx, cancel := context.WithTimeout(background, 10*time.Second)
			defer cancel()
			_, err := echo.Call(ctx, conn, "a", asterisque.WithDurable())
			require.ErrorContains(t, err, "maintenance")
			_, err = echo.Call(ctx, conn, "a")
			require.ErrorContains(t, err, "maintenance")
		})
	}
}

// TestARefusalAfterAttemptsThatDidNotRunSaysSo is what a choice among several needs.
func TestARefusalAfterAttemptsThatDidNotRunSaysSo(t *testing.T) {
	dead, _ := connect(t, echoService())
	dead.Close()
	live, _ := connect(t, echoService())
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
		_, err := echo.Call(background, all, "a")
		require.ErrorContains(t, err, "have failed", name)
		require.Equal(t, c.repeatable, asterisque.Repeatable(err), name)
	}
}

// TestTheTimeToLiveOfAStreamCountsFromItsCall has interceptors that take their time, and attempts
// that fail.
func TestTheTimeToLiveOfAStreamCountsFromItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		var left atomic.Int64
		svc.Handle(50, "waits", func(ctx context.Context, p *pipe.Pipe, params []byte) ([]byte, error) {
			at, _ := ctx.Deadline()
			left.Store(int64(time.Until(at)))
			return waitForContext(ctx, p, params)
		})
		dialled, accepted := inMemory(t, svc)
		slow := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			time.Sleep(time.Second) // as a limit on the rate does
			return next(ctx, c)
		}
		begin := time.Now()
		p, err := asterisque.OpenOn(background, asterisque.Intercept(dialled, again(3), slow), 50, nil, asterisque.WithTTL(5*time.Second))
		require.NoError(t, err)
		<-p.Done()
		require.ErrorIs(t, p.Err(), asterisque.ErrExpired)
		require.Equal(t, 5*time.Second, time.Since(begin))
		require.Equal(t, 2*time.Second, time.Duration(left.Load()).Round(time.Second))

		_, err = asterisque.OpenOn(background, asterisque.Intercept(dialled, slow), 50, nil, asterisque.WithTTL(time.Second/2))
		require.ErrorIs(t, err, asterisque.ErrExpired)
		require.True(t, asterisque.Repeatable(err))
		wantIdle(t, dialled, accepted)
	})
}
