package calls

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
)

// Watches of health leave the only worker to other calls.
func TestHealth_WatchKeepsNoWorker(t *testing.T) {
	for name, workers := range map[string]asterisque.Workers{"of the session": {Session: 1}, "of the node": {Node: 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := asterisque.NewHealth()
				_, _, dialled, accepted := testkit.TwoNodes(t, healthy(h), asterisque.WithWorkers(workers))
				for range 20 { // a call that ends releases its place
					var watches []*watching
					for range 4 {
						w := watchHealth(t, dialled)
						wantNews(t, w, health{"": serving})
						watches = append(watches, w)
					}
					_, err := testkit.Echo.Call(testkit.Background, dialled, "still served")
					require.NoError(t, err)
					for _, w := range watches {
						w.Abort(nil)
					}
					synctest.Wait()
					require.Zero(t, accepted.Stats().Running)
				}
			})
		})
	}
}

// TestAttackHealth_Watches uses a peer that opens many watches: beyond a few, each needs a worker
// as all calls do.
func TestAttackHealth_Watches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers, watches = 2, 100
		h := asterisque.NewHealth()
		_, there, dialled, accepted := testkit.TwoNodes(t, healthy(h), asterisque.WithWorkers(asterisque.Workers{Session: workers}))
		before := runtime.NumGoroutine()
		var all []*watching
		for range watches {
			all = append(all, watchHealth(t, dialled))
		}
		synctest.Wait()
		require.Equal(t, workers+4, there.Stats().Busy)
		require.Equal(t, 4, there.Stats().Lent)
		require.LessOrEqual(t, runtime.NumGoroutine()-before, workers+4+2)
		echoed := make(chan error, 1)
		go func() {
			_, err := testkit.Echo.Call(testkit.Background, dialled, "", asterisque.WithTTL(time.Second))
			echoed <- err
		}()
		require.ErrorIs(t, <-echoed, asterisque.ErrExpired, "the peer has taken its workers itself")
		for _, w := range all[:workers+4] {
			w.Abort(nil)
		}
		synctest.Wait()
		require.Equal(t, workers, there.Stats().Busy-there.Stats().Lent, "the next ones are as all other calls")
		begin := time.Now()
		require.NoError(t, accepted.Shutdown(testkit.Background))
		require.Less(t, time.Since(begin), 2*time.Second)
		require.Zero(t, there.Stats().Busy)
	})
}

// TestAttackHealth_StrangeWatch sends Opens that no caller of this library sends.
func TestAttackHealth_StrangeWatch(t *testing.T) {
	watch := func(pipe uint64, meta message.Meta, params ...byte) *message.Open {
		if len(params) == 0 {
			params = []byte{0xa0}
		}
		return &message.Open{Pipe: pipe, Function: asterisque.WatchHealth.Number(), Params: params, Meta: meta}
	}
	for name, open := range map[string]func(pipe uint64) *message.Open{
		"without a stream": func(pipe uint64) *message.Open { return watch(pipe, message.Meta{}) },
		"without a window": func(pipe uint64) *message.Open { return watch(pipe, message.Meta{Stream: true}) },
		"with a key": func(pipe uint64) *message.Open {
			return watch(pipe, message.Meta{Stream: true, Key: []byte(fmt.Sprintf("%16d", pipe)), Window: 1 << 10})
		},
		"with a short life": func(pipe uint64) *message.Open { return watch(pipe, message.Meta{Stream: true, TTL: 1, Window: 1}) },
		"of no map":         func(pipe uint64) *message.Open { return watch(pipe, message.Meta{Stream: true, Window: 1 << 10}, 0x01) },
		"of parts that are no text": func(pipe uint64) *message.Open {
			return watch(pipe, message.Meta{Stream: true, Window: 1 << 10}, 0xa1, 0x01, 0x81, 0x01)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := asterisque.NewHealth()
				there := asterisque.NewNode(asterisque.WithService(healthy(h)), asterisque.WithWorkers(asterisque.Workers{Session: 1}))
				defer there.Close()
				p, _ := testkit.RawTo(t, there, testkit.Hello())
				for i := range uint64(20) {
					p.Send(open(2 * i))
				}
				go func() { // ends with the wire
					for {
						if _, err := p.W.ReadFrame(1 << 20); err != nil {
							return
						}
					}
				}()
				fakeclock.Sleep(time.Second)
				for i := range 100 {
					require.NoError(t, h.Set("a", serving+asterisque.HealthState(i%2)))
				}
				synctest.Wait()
				require.LessOrEqual(t, there.Stats().Busy, 5)
				begin := time.Now()
				require.NoError(t, there.Shutdown(testkit.Background))
				require.Less(t, time.Since(begin), 2*time.Second)
				p.W.Close()
			})
		})
	}
}

// A query for too many parts is refused.
func TestHealth_TooManyParts(t *testing.T) {
	dialled, _ := testkit.Connect(t, healthy(asterisque.NewHealth()))
	q := asterisque.HealthQuery{Parts: make([]string, 65)}
	_, err := asterisque.CheckHealth.Call(testkit.Background, dialled, q)
	require.ErrorIs(t, err, asterisque.ErrBadParams)
	w, err := asterisque.WatchHealth.Open(testkit.Background, dialled, q)
	require.NoError(t, err)
	_, err = w.Recv(testkit.Background)
	require.ErrorIs(t, err, asterisque.ErrBadParams)
}

// A health that the caller does not accept fails with ErrTooLarge.
func TestHealth_CallerTakesLess(t *testing.T) {
	h := asterisque.NewHealth()
	for i := range 20 {
		require.NoError(t, h.Set(fmt.Sprint(strings.Repeat("x", 100), i), serving))
	}
	here := asterisque.NewNode(asterisque.WithLimits(asterisque.Limits{MaxMessage: 1 << 10}))
	there := asterisque.NewNode(asterisque.WithService(healthy(h)))
	t.Cleanup(func() { here.Close(); there.Close() })
	dialled, _ := testkit.ConnectNodes(t, here, there)
	_, err := asterisque.CheckHealth.Call(testkit.Background, dialled, asterisque.HealthQuery{})
	require.ErrorIs(t, err, asterisque.ErrTooLarge)
	_, err = watchHealth(t, dialled).Recv(testkit.Background)
	require.ErrorIs(t, err, asterisque.ErrTooLarge)
	wantNews(t, watchHealth(t, dialled, ""), health{"": serving})
}

// An interceptor that hides the session hides neither a drain nor the end.
func TestHealth_InterceptorHides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, dialled, accepted := testkit.TwoNodes(t, healthy(asterisque.NewHealth()), asterisque.WithInboundInterceptors(
			func(_ context.Context, c *asterisque.Call, next asterisque.Next) error {
				return next(testkit.Background, c)
			}))
		w := watchHealth(t, dialled)
		wantNews(t, w, health{"": serving})
		given := watchHealth(t, dialled)
		wantNews(t, given, health{"": serving})
		given.Abort(nil)
		synctest.Wait()
		require.Equal(t, 1, accepted.Stats().Running, "the one that was given up has ended")
		_, err := asterisque.CheckHealth.Call(testkit.Background, dialled, asterisque.HealthQuery{})
		require.NoError(t, err)
		begin := time.Now()
		require.NoError(t, accepted.Shutdown(testkit.Background))
		require.Less(t, time.Since(begin), 2*time.Second)
		wantNews(t, w, health{"": notServing})
	})
}

// A watch ends with its session.
func TestHealth_EndsWithSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(healthy(asterisque.NewHealth())))
		defer here.Close()
		defer there.Close()
		a, b := wire.Pipe()
		dialled, accepted := asterisquetest.ConnectOver(t, here, there, a, b)
		w := watchHealth(t, dialled)
		wantNews(t, w, health{"": serving})
		a.Close()
		_, err := w.Recv(testkit.Background)
		require.Error(t, err)
		<-accepted.Done()
		synctest.Wait()
		require.Zero(t, there.Stats().Busy)
	})
}
