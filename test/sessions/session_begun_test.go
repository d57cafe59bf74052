package sessions

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

var (
	plain  = asterisque.Func[string, string](40, "plain")
	inline = asterisque.Func[string, string](41, "inline")
	keyed  = asterisque.Func[string, string](42, "keyed")
	single = asterisque.Func[string, string](43, "single")
)

// counting is a service with handlers that count their starts.
func counting(begun *atomic.Int64) *asterisque.Service {
	svc := testkit.EchoService()
	handle := func(_ context.Context, text string) (string, error) { begun.Add(1); return text, nil }
	plain.Handle(svc, handle)
	inline.Handle(svc, handle, asterisque.WithInline())
	keyed.Handle(svc, handle, asterisque.WithKey(func(text string) string { return text }))
	single.Handle(svc, handle, asterisque.WithConcurrency(1))
	return svc
}

// callAll calls every function of counting, and returns a channel with the outcome of each.
func callAll(s *asterisque.Session) (results chan error) {
	results = make(chan error, 8)
	for _, f := range []asterisque.Function[string, string]{plain, inline, keyed, single} {
		for range 2 {
			go func() { _, err := f.Call(testkit.Background, s, "x"); results <- err }()
		}
	}
	return results
}

// SessionBegun is called before the first handler runs.
func TestHooks_BegunFirst(t *testing.T) {
	for name, last := range map[string]func(){
		"the last hook returns":            func() {},
		"the last hook panics":             func() { panic("no") },
		"the last hook ends its goroutine": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var begun atomic.Int64
				end := make(chan struct{})
				there := testkit.NewNode(t, asterisque.WithService(counting(&begun)),
					asterisque.WithHooks(asterisque.Hooks{SessionBegun: func(*asterisque.Session) { <-end; panic("the next one is called") }}),
					asterisque.WithHooks(asterisque.Hooks{SessionBegun: func(*asterisque.Session) { last() }}))
				s, _ := asterisquetest.ConnectNodes(t, testkit.NewNode(t), there)
				results := callAll(s)
				fakeclock.Sleep(900 * time.Millisecond)
				synctest.Wait()
				require.Zero(t, begun.Load())
				close(end)
				synctest.Wait()
				require.EqualValues(t, cap(results), begun.Load())
				for range cap(results) {
					require.NoError(t, <-results)
				}
			})
		})
	}
}

// A SessionBegun that blocks holds back handlers for a second.
func TestHooks_BegunBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int64
		there := testkit.NewNode(t, asterisque.WithService(counting(&begun)),
			asterisque.WithHooks(asterisque.Hooks{SessionBegun: func(s *asterisque.Session) { <-s.Done() }}))
		s, _ := asterisquetest.ConnectNodes(t, testkit.NewNode(t), there)
		begin := time.Now()
		results := callAll(s)
		for range cap(results) {
			require.NoError(t, <-results)
		}
		require.Equal(t, time.Second, time.Since(begin))
		_, err := plain.Call(testkit.Background, s, "x")
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(begin), "once")
	})
}

// TestHooks_BegunMayCall requires that the hook SessionBegun may make calls and receive them, on
// either side.
func TestHooks_BegunMayCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		greet := asterisque.Func[string, string](44, "greet")
		here := asterisque.NewService()
		greet.Handle(here, func(ctx context.Context, name string) (string, error) {
			return testkit.Echo.Call(ctx, asterisque.SessionOf(ctx), name)
		})
		greeted := make(chan error, 1)
		there := testkit.NewNode(t, asterisque.WithService(testkit.EchoService()),
			asterisque.WithHooks(asterisque.Hooks{SessionBegun: func(s *asterisque.Session) {
				_, err := greet.Call(testkit.Background, s, "x")
				greeted <- err
			}}))
		s, _ := asterisquetest.ConnectNodes(t, testkit.NewNode(t, asterisque.WithService(here)), there)
		_, err := testkit.Echo.Call(testkit.Background, s, "")
		require.NoError(t, err)
		require.NoError(t, <-greeted)
		require.Equal(t, begin, time.Now())
	})
}
