package calls

import (
	"context"
	"flag"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

var manyLost = flag.Int("lost", 150, "how many calls of each kind TestHandler_EndReleasesAll makes")

// TestHandler_EndReleasesAll ends handlers of every kind by a panic, a nil panic and Goexit, while
// other calls wait for their resources. Afterwards all resources are released.
func TestHandler_EndReleasesAll(t *testing.T) {
	ends := map[string]func(){"panics": func() { panic("x") }, "panics with nil": func() { panic(nil) }, "exits": runtime.Goexit}
	for _, workers := range []int{1, 4} {
		for how, end := range ends {
			t.Run(how, func(t *testing.T) { playLost(t, workers, how != "exits", end) })
		}
	}
}

func playLost(t *testing.T, workers int, inline bool, end func()) {
	svc := asterisque.NewService()
	one := func(string) string { return "one" }
	f := func(ctx context.Context, s string) (string, error) { end(); return s, nil }
	kinds := map[string]asterisque.Function[string, string]{}
	add := func(name string, h func(context.Context, string) (string, error), opts ...asterisque.HandlerOption) {
		k := asterisque.Func[string, string](uint16(30+len(kinds)), name)
		k.Handle(svc, h, opts...)
		kinds[name] = k
	}
	add("plain", f)
	add("gate", f, asterisque.WithConcurrency(1))
	add("key", f, asterisque.WithKey(one))
	add("both", f, asterisque.WithKey(one), asterisque.WithConcurrency(2))
	if inline { // where the end of the goroutine does not end the session
		add("inline", f, asterisque.WithInline())
	}
	back := kinds["gate"]
	nest := func(ctx context.Context, s string) (string, error) {
		back.Call(ctx, asterisque.SessionOf(ctx), s)
		end()
		return s, nil
	}
	add("nested", nest)
	stream := asterisque.Stream[string, string, string, string](60, "stream")
	stream.Handle(svc, func(ctx context.Context, s string, p *asterisque.Pipe[string, string]) (string, error) {
		p.Send(ctx, s)
		end()
		return s, nil
	})
	opts := []asterisque.Option{asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: workers, Node: workers})}
	here, there := asterisque.NewNode(opts...), asterisque.NewNode(opts...)
	t.Cleanup(func() { here.Close(); there.Close() })
	dialled, accepted := testkit.ConnectNodes(t, here, there)
	var all sync.WaitGroup
	for _, k := range kinds {
		for g := range 4 {
			all.Go(func() {
				for i := range *manyLost / 4 {
					var o []asterisque.CallOption
					if (i+g)%2 == 0 {
						o = append(o, asterisque.WithDurable())
					}
					k.Call(testkit.Background, dialled, "x", o...)
				}
			})
		}
	}
	for range 4 {
		all.Go(func() {
			for range *manyLost / 4 {
				if c, err := stream.Open(testkit.Background, dialled, "x"); err == nil {
					c.Send(testkit.Background, "a")
					c.Result(testkit.Background)
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, accepted.Err())
	testkit.Settled(t, func() bool {
		st := accepted.Stats()
		return st.Pipes == 0 && st.Running == 0 && st.Waiting == 0 && st.Holding == 0 && st.Classes.Nested.Held == 0 && st.Classes.Calls.Held == 0
	})
	testkit.Settled(t, func() bool {
		a, b := here.Stats(), there.Stats()
		return a.Busy == 0 && b.Busy == 0 && a.Lent == 0 && b.Lent == 0 && a.Crowded == 0 && b.Crowded == 0
	})
}

// exitingError ends the goroutine that calls Error, exitingTracer the one that reports the end.
type exitingError struct{}

func (exitingError) Error() string { runtime.Goexit(); return "" }

func exits(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
	next(ctx, c)
	runtime.Goexit()
	return nil
}

// A call is answered with ErrPanicked if application code ends its goroutine.
func TestHandler_EndIsAnswered(t *testing.T) {
	fails := asterisque.Func[string, string](20, "fails")
	svc := asterisque.NewService()
	fails.Handle(svc, func(context.Context, string) (string, error) { return "", exitingError{} })
	dialled, accepted := testkit.Connect(t, svc, asterisque.WithInboundInterceptors(exits), asterisque.WithWorkers(asterisque.Workers{Session: 1}))
	for range 3 {
		_, err := fails.Call(testkit.Background, dialled, "x")
		require.ErrorIs(t, err, asterisque.ErrPanicked)
	}
	testkit.Settled(t, func() bool { st := accepted.Stats(); return st.Pipes == 0 && st.Running == 0 })
}
