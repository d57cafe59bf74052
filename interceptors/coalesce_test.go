package interceptors_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/interceptors"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/priority"
	"github.com/asterisque-go/asterisque/wire"
)

// slowly answers after a second, and records its calls.
type slowly struct {
	mu  sync.Mutex
	ran []string
}

func (h *slowly) handle(ctx context.Context, s string) (string, error) {
	h.mu.Lock()
	h.ran = append(h.ran, s)
	n := len(h.ran)
	h.mu.Unlock()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	switch s {
	case "fails":
		return "", &asterisque.Abort{Code: 1042, Message: fmt.Sprint("failure ", n)}
	case "exits":
		runtime.Goexit()
	case "panics":
		panic("oops")
	}
	return fmt.Sprint(s, " ", n), nil
}

func (h *slowly) times() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.ran)
}

// coalescing runs f with a session with coalesced calls, on either side.
func coalescing(t *testing.T, f func(t *testing.T, s *asterisque.Session, h *slowly)) {
	for _, side := range []string{"made", "served"} {
		t.Run(side, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := new(slowly)
				here, there := node(t), node(t, serving(h.handle), served(interceptors.Coalesce()))
				if side == "made" {
					here, there = node(t, made(interceptors.Coalesce())), node(t, serving(h.handle))
				}
				f(t, connect(t, here, there), h)
			})
		})
	}
}

// together makes all calls at the same time, the first one first, and returns the outcome of each.
func together(calls ...func() (string, error)) (said []string) {
	said = make([]string, len(calls))
	var wg sync.WaitGroup
	for i, c := range calls {
		wg.Go(func() {
			got, err := c()
			if err != nil {
				got = "error " + codec.AbortOf(err).Message
			}
			said[i] = got
		})
		synctest.Wait()
	}
	wg.Wait()
	return said
}

func TestCoalesce_RunsOnce(t *testing.T) {
	coalescing(t, func(t *testing.T, s *asterisque.Session, h *slowly) {
		for i := range 3 {
			c := func() (string, error) { return call(background, s, "x") }
			want := fmt.Sprint("x ", i+1)
			require.Equal(t, time.Second, took(func() { require.Equal(t, []string{want, want, want}, together(c, c, c)) }))
			require.Equal(t, i+1, h.times(), "answers are not cached")
		}
	})
}

func TestCoalesce_SharedError(t *testing.T) {
	coalescing(t, func(t *testing.T, s *asterisque.Session, h *slowly) {
		c := func() (string, error) { return call(background, s, "fails") }
		require.Equal(t, []string{"error failure 1", "error failure 1"}, together(c, c))
		require.Equal(t, 1, h.times())
	})
}

func TestCoalesce_DifferentCalls(t *testing.T) {
	coalescing(t, func(t *testing.T, s *asterisque.Session, h *slowly) {
		together(
			func() (string, error) { return echo.Call(background, s, "x") },
			func() (string, error) { return other.Call(background, s, "x") },
			func() (string, error) { return echo.Call(background, s, "y") },
			func() (string, error) {
				return echo.Call(background, s, "x", asterisque.WithPriority(priority.Priority(1)))
			},
			func() (string, error) { return stream(background, s, "x") },
			func() (string, error) { return stream(background, s, "x") },
		)
		slices.Sort(h.ran)
		require.Equal(t, []string{"x", "x", "x", "x", "x", "y"}, h.ran)
	})
}

func TestCoalesce_RunningIsCanceled(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, next time.Duration // when they are canceled; 0: never
		said        []string
		ran         int
	}{
		{"the one that runs", time.Second / 2, 0, []string{"error canceled", "x 2", "x 2"}, 2},
		{"one that waits", 0, time.Second / 2, []string{"x 1", "error canceled", "x 1"}, 1},
		{"both", time.Second / 2, time.Second / 4, []string{"error canceled", "error canceled", "x 2"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			coalescing(t, func(t *testing.T, s *asterisque.Session, h *slowly) {
				give := func(up time.Duration) func() (string, error) {
					return func() (string, error) {
						ctx, cancel := context.WithCancel(background)
						defer cancel()
						if up > 0 {
							defer time.AfterFunc(up, cancel).Stop()
						}
						got, err := call(ctx, s, "x")
						if err != nil {
							err = asterisque.ErrCanceled.Withf("canceled")
						}
						return got, err
					}
				}
				require.Equal(t, c.said, together(give(c.first), give(c.next), give(0)))
				require.Equal(t, c.ran, h.times())
			})
		})
	}
}

// TestAttackCoalesce_RepeatedCancels has a peer that makes the calls for which other calls wait,
// and cancels each of them.
func TestAttackCoalesce_RepeatedCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(slowly)
		there := node(t, serving(h.handle), served(interceptors.CoalesceAcrossPeers()))
		attacker, victim := connect(t, node(t), there), connect(t, node(t), there)
		over := make(chan struct{})
		var attacks sync.WaitGroup
		for i := range 20 { // in turn, each shortly before its end
			attacks.Go(func() {
				for begun := false; ; begun = true {
					wait := 900 * time.Millisecond
					if !begun {
						wait = time.Duration(i+1) * 45 * time.Millisecond
					}
					select {
					case <-over:
						return
					default:
					}
					ctx, cancel := context.WithTimeout(background, wait)
					call(ctx, attacker, "x")
					cancel()
				}
			})
		}
		synctest.Wait()
		elapsed := took(func() {
			_, err := call(background, victim, "x")
			require.NoError(t, err)
		})
		close(over)
		attacks.Wait()
		require.LessOrEqual(t, elapsed, 4*time.Second)
	})
}

func TestCoalesce_OneExpires(t *testing.T) {
	coalescing(t, func(t *testing.T, s *asterisque.Session, h *slowly) {
		said := together(
			func() (string, error) { return echo.Call(background, s, "x", asterisque.WithTTL(time.Second/2)) },
			func() (string, error) { return echo.Call(background, s, "x", asterisque.WithTTL(time.Minute)) },
		)
		require.Contains(t, said[0], "error")
		require.Equal(t, "x 2", said[1])
	})
}

func TestCoalesce_WaitingIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(slowly)
		s := connect(t, node(t, made(interceptors.Coalesce())), node(t, serving(h.handle)))
		go call(background, s, "x")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(background, time.Second/2)
		defer cancel()
		_, err := call(ctx, s, "x")
		require.ErrorIs(t, err, asterisque.ErrExpired)
		require.True(t, asterisque.Repeatable(err))
		fakeclock.Sleep(time.Minute)
		require.Equal(t, 1, h.times())
	})
}

func TestCoalesce_HandlerNeverReturns(t *testing.T) {
	coalescing(t, func(t *testing.T, s *asterisque.Session, h *slowly) {
		for _, how := range []string{"panics", "exits"} {
			c := func() (string, error) { return call(background, s, how) }
			for _, said := range together(c, c, c) {
				require.Contains(t, said, "error")
			}
			_, err := call(background, s, "x")
			require.NoError(t, err)
		}
	})
}

func TestCoalesce_GoroutineEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var once sync.Once
		exits := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			fakeclock.Sleep(time.Second)
			once.Do(runtime.Goexit)
			return next(ctx, c)
		}
		s := connect(t, node(t, made(interceptors.Coalesce(), exits)), node(t, serving(says)))
		go call(background, s, "x")
		synctest.Wait()
		got, err := call(background, s, "x")
		require.NoError(t, err)
		require.Equal(t, "x", got)
	})
}

func TestCoalesce_AcrossPeers(t *testing.T) {
	for name, c := range map[string]struct {
		around asterisque.Interceptor
		ran    int
	}{"not asked for": {interceptors.Coalesce(), 2}, "asked for": {interceptors.CoalesceAcrossPeers(), 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := new(slowly)
				there := node(t, serving(h.handle), served(c.around))
				a, b := connect(t, node(t), there), connect(t, node(t), there)
				said := together(func() (string, error) { return call(background, a, "x") }, func() (string, error) { return call(background, b, "x") })
				require.Equal(t, []string{"x 1", fmt.Sprint("x ", c.ran)}, said)
				require.Equal(t, c.ran, h.times())
			})
		})
	}
}

func TestCoalesce_TwoPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(slowly)
		here := node(t, made(interceptors.CoalesceAcrossPeers()))
		a, b := connect(t, here, node(t, serving(h.handle))), connect(t, here, node(t, serving(h.handle)))
		together(func() (string, error) { return call(background, a, "x") }, func() (string, error) { return call(background, b, "x") })
		require.Equal(t, 2, h.times())
	})
}

func TestCoalesce_SessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(slowly)
		there := node(t, serving(h.handle), served(interceptors.CoalesceAcrossPeers()))
		a, b := connect(t, node(t), there), connect(t, node(t), there)
		said := together(
			func() (string, error) {
				time.AfterFunc(time.Second/2, func() { a.Close() })
				return call(background, a, "x")
			},
			func() (string, error) { return call(background, b, "x") },
		)
		require.Contains(t, said[0], "error")
		require.Equal(t, "x 2", said[1])
	})
}

// TestCoalesce_OwnResults makes each call change its result at once.
func TestCoalesce_OwnResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(slowly)
		s := connect(t, node(t, made(interceptors.Coalesce())), node(t, serving(h.handle)))
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				got, err := s.Call(background, 10, []byte("\x61x"))
				require.NoError(t, err)
				require.Equal(t, "\x63x 1", string(got))
				clear(got)
			})
		}
		wg.Wait()
		require.Equal(t, 1, h.times())
	})
}

func TestCoalesce_Metadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(slowly)
		s := connect(t, node(t, made(interceptors.Coalesce())), node(t, serving(h.handle)))
		with := func(m asterisque.Metadata) func() (string, error) {
			return func() (string, error) { return echo.Call(background, s, "x", asterisque.WithMetadata(m)) }
		}
		together(
			with(nil), with(asterisque.Metadata{}),
			with(asterisque.Metadata{"k": "v"}), with(asterisque.Metadata{"k": "v"}),
			with(asterisque.Metadata{"k": []byte("v")}),
			with(asterisque.Metadata{"k": "w"}), with(asterisque.Metadata{"kv": ""}),
			with(asterisque.Metadata{"k": "v", "l": "v"}), with(asterisque.Metadata{"l": "v", "k": "v"}),
		)
		require.Equal(t, 6, h.times())
	})
}

func TestCoalesce_AroundConnection(t *testing.T) {
	h := new(slowly)
	there := node(t, serving(h.handle))
	ln, err := wire.Listen(background, "tcp://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	var serves sync.WaitGroup
	serves.Go(func() { there.Serve(background, ln) })
	t.Cleanup(func() { there.Close(); serves.Wait() })
	conn, err := node(t).Connect(background, ln.URL(), asterisque.ReconnectConfig{})
	require.NoError(t, err)
	around := asterisque.Intercept(conn, interceptors.Coalesce())
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			_, err := asterisque.CallOn(background, around, 10, []byte("\x61x"))
			require.NoError(t, err)
		})
	}
	wg.Wait()
	require.Equal(t, 2, h.times())
}
