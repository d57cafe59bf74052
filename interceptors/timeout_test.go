package interceptors_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/interceptors"
)

// after answers after d, unless its context ends before.
func after(d time.Duration) func(context.Context, string) (string, error) {
	return func(ctx context.Context, s string) (string, error) {
		select {
		case <-time.After(d):
			return s, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func TestTimeout_Default(t *testing.T) {
	const d = time.Minute
	for side, of := range map[string]func(...asterisque.Interceptor) (here, there asterisque.Option){
		"made":   func(i ...asterisque.Interceptor) (_, _ asterisque.Option) { return made(i...), served() },
		"served": func(i ...asterisque.Interceptor) (_, _ asterisque.Option) { return made(), served(i...) },
	} {
		for kind, make := range kinds {
			for _, c := range []struct {
				name string
				runs time.Duration // the handler
				own  time.Duration // deadline of the caller; 0: none
				want time.Duration // when it ends
				err  error
			}{
				{"it is in time", d - time.Second, 0, d - time.Second, nil},
				{"it takes too long", d + time.Second, 0, d, asterisque.ErrExpired},
				{"it has a longer one", d + time.Second, 2 * d, d + time.Second, nil},
				{"it has a shorter one", d, time.Second, time.Second, asterisque.ErrExpired},
			} {
				t.Run(side+" "+kind+" "+c.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						here, there := of(interceptors.Timeout(d))
						s := connect(t, node(t, here), node(t, there, serving(after(c.runs))))
						ctx := background
						if c.own > 0 {
							var cancel func()
							ctx, cancel = context.WithTimeout(ctx, c.own)
							defer cancel()
						}
						require.Equal(t, c.want, took(func() {
							_, err := make(ctx, s, "x")
							require.ErrorIs(t, err, c.err)
						}))
					})
				})
			}
		}
	}
}

func TestTimeout_Travels(t *testing.T) {
	for kind, make := range kinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var left time.Duration
				s := connect(t, node(t, made(interceptors.Timeout(time.Minute))), node(t, serving(func(ctx context.Context, s string) (string, error) {
					at, _ := ctx.Deadline()
					left = time.Until(at)
					return s, nil
				})))
				_, err := make(background, s, "x")
				require.NoError(t, err)
				require.Equal(t, time.Minute, left.Round(time.Second))
			})
		})
	}
}

func TestTimeout_TTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, node(t, made(interceptors.Timeout(time.Second))), node(t, serving(after(time.Minute))))
		_, err := echo.Call(background, s, "x", asterisque.WithTTL(time.Hour))
		require.NoError(t, err)
	})
}

func TestTimeout_ReleasesContext(t *testing.T) {
	for kind, make := range kinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var within []context.Context
				keep := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
					within = append(within, ctx)
					return next(ctx, c)
				}
				long := interceptors.Timeout(math.MaxInt64)
				s := connect(t, node(t, made(long, keep)), node(t, served(long, keep), serving(says)))
				_, err := make(background, s, "x")
				require.NoError(t, err)
				synctest.Wait()
				require.Len(t, within, 2)
				for _, ctx := range within {
					require.Error(t, ctx.Err())
				}
			})
		})
	}
}

func TestTimeout_Cause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, node(t), node(t, served(interceptors.Timeout(3*time.Second)), serving(waits)))
		_, err := call(background, s, "x")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "3s")
	})
}

func TestTimeout_BadArgument(t *testing.T) {
	for _, d := range []time.Duration{0, -1} {
		require.Panics(t, func() { interceptors.Timeout(d) })
	}
	require.NotPanics(t, func() { interceptors.Timeout(1) })
}
