package interceptors_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/interceptors"
)

// refusing rejects the first calls, and counts all.
func refusing(first int64, err error, count *atomic.Int64) asterisque.Interceptor {
	return func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		if count.Add(1) <= first {
			return c.Refuse(err)
		}
		return next(ctx, c)
	}
}

func TestRetry_Budget(t *testing.T) {
	advised := codec.OverloadedFor(time.Second, "later")
	for kind, make := range kinds {
		for _, c := range []struct {
			name     string
			retry    *asterisque.Retry
			refused  int64
			by       error
			attempts int64
			least    time.Duration
			err      error
		}{
			{"none is refused", &asterisque.Retry{}, 0, nil, 1, 0, nil},
			{"two are refused", &asterisque.Retry{}, 2, advised, 3, 2 * time.Second, nil},
			{"as many as it has attempts", &asterisque.Retry{Attempts: 3}, 3, advised, 3, 2 * time.Second, asterisque.ErrOverloaded},
			{"another error", &asterisque.Retry{}, 1, asterisque.ErrUnauthorized, 1, 0, asterisque.ErrUnauthorized},
			{"the budget is used up", &asterisque.Retry{Budget: asterisque.NewRetryBudget(0, 1)}, 9, advised, 2, time.Second, asterisque.ErrOverloaded},
		} {
			t.Run(kind+" "+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var attempts atomic.Int64
					refuses := refusing(c.refused, c.by, &attempts)
					here, there := made(interceptors.Retry(c.retry)), served(refuses)
					if kind == "stream" {
						here, there = made(interceptors.Retry(c.retry), refuses), served()
					}
					s := connect(t, node(t, here), node(t, serving(says), there))
					require.GreaterOrEqual(t, took(func() {
						got, err := make(background, s, "x")
						require.ErrorIs(t, err, c.err)
						if c.err == nil {
							require.Equal(t, "x", got)
						}
					}), c.least)
					require.Equal(t, c.attempts, attempts.Load())
				})
			})
		}
	}
}

func TestRetry_OwnSideRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// five a second, and one at once: each later call waits
		s := connect(t, node(t, made(interceptors.Retry(&asterisque.Retry{First: time.Millisecond}), interceptors.RatePerPeer(5, 1))), node(t, serving(says)))
		elapsed := took(func() {
			for range 6 {
				_, err := call(background, s, "x")
				require.NoError(t, err)
			}
		})
		require.GreaterOrEqual(t, elapsed, time.Second)
		require.Less(t, elapsed, 2*time.Second)
	})
}

func TestRetry_StreamRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts atomic.Int64
		s := connect(t, node(t, made(interceptors.Retry(new(asterisque.Retry)))), node(t, serving(says), served(refusing(1, asterisque.ErrOverloaded, &attempts))))
		_, err := stream(background, s, "x")
		require.ErrorIs(t, err, asterisque.ErrOverloaded)
		require.True(t, asterisque.Repeatable(err), "which the caller may do")
		require.EqualValues(t, 1, attempts.Load())
	})
}

func TestRetry_ServedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts atomic.Int64
		s := connect(t, node(t), node(t, serving(says), served(interceptors.Retry(new(asterisque.Retry)), refusing(1, asterisque.ErrOverloaded, &attempts))))
		_, err := call(background, s, "x")
		require.ErrorIs(t, err, asterisque.ErrOverloaded)
		require.EqualValues(t, 1, attempts.Load())
	})
}

func TestRetry_Nil(t *testing.T) {
	require.Panics(t, func() { interceptors.Retry(nil) })
}
