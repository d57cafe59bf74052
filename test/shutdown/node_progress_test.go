package shutdown

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// chronicle has the calls of Hooks.Shutdown, and their times.
type chronicle struct {
	mu   sync.Mutex
	told []asterisque.ShutdownProgress // guarded by mu, as at
	at   []time.Time
}

func (c *chronicle) hook() asterisque.Option {
	return asterisque.WithHooks(asterisque.Hooks{Shutdown: func(p asterisque.ShutdownProgress) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.told, c.at = append(c.told, p), append(c.at, time.Now())
	}})
}

// list returns the calls, without the remaining time.
func (c *chronicle) list() (all [][2]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.told {
		all = append(all, [2]int{p.Sessions, p.Calls})
	}
	return all
}

// timed offers function 80. Its calls take the time of their parameter, in seconds.
func timed() *asterisque.Service {
	svc := asterisque.NewService()
	svc.Handle(80, "timed", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
		fakeclock.Sleep(time.Duration(params[0])*time.Second + 50*time.Millisecond)
		return nil, nil
	})
	return svc
}

// Progress has the remaining sessions and calls.
func TestProgress_SessionsAndCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c chronicle
		here, there, first, _ := testkit.TwoNodes(t, timed(), c.hook())
		second, _ := asterisquetest.ConnectNodes(t, here, there)
		for _, s := range []*asterisque.Session{first, first, second} {
			_, err := s.Open(testkit.Background, 80, []byte{5})
			require.NoError(t, err)
		}
		_, err := second.Open(testkit.Background, 80, []byte{10})
		require.NoError(t, err)
		synctest.Wait()
		require.Empty(t, c.list())
		begin := time.Now()
		require.NoError(t, there.Shutdown(testkit.Background))
		synctest.Wait()
		require.Equal(t, [][2]int{{2, 4}, {1, 1}, {0, 0}}, c.list())
		require.Equal(t, 30*time.Second, c.told[0].Left)
		require.Equal(t, 25*time.Second, c.told[1].Left.Round(time.Second))
		require.Equal(t, []time.Duration{0, 5 * time.Second, 10 * time.Second}, []time.Duration{
			c.at[0].Sub(begin), c.at[1].Sub(begin).Round(time.Second), c.at[2].Sub(begin).Round(time.Second),
		})
	})
}

// Progress is reported at a bounded rate.
func TestProgress_NotTooOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c chronicle
		svc := asterisque.NewService()
		svc.Handle(80, "short", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
			fakeclock.Sleep(time.Duration(params[0]) * 10 * time.Millisecond)
			return nil, nil
		})
		_, there, dialled, _ := testkit.TwoNodes(t, svc, c.hook())
		for i := range 100 {
			_, err := dialled.Open(testkit.Background, 80, []byte{byte(1 + i)})
			require.NoError(t, err)
		}
		synctest.Wait()
		require.NoError(t, there.Shutdown(testkit.Background))
		synctest.Wait()
		require.LessOrEqual(t, len(c.told), 12, "in a second")
		require.GreaterOrEqual(t, len(c.told), 9)
		require.Equal(t, [2]int{1, 100}, c.list()[0])
	})
}

// Progress has the remaining time.
func TestProgress_TimeLeft(t *testing.T) {
	for name, c := range map[string]struct{ limit, ctx, left time.Duration }{
		"until the time of the drain is over": {time.Minute, 0, time.Minute},
		"until the context ends":              {time.Minute, time.Second, time.Second},
		"or that there is no limit":           {-1, 0, -1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told chronicle
				ctx := testkit.Background
				if c.ctx > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.ctx)
					defer cancel()
				}
				_, there, _, _ := testkit.TwoNodes(t, testkit.EchoService(), testkit.DrainOf(c.limit), told.hook())
				require.NoError(t, there.Shutdown(ctx))
				synctest.Wait()
				require.Equal(t, c.left, told.told[0].Left)
			})
		})
	}
}

// Only one shutdown of a node is reported.
func TestProgress_OneShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c chronicle
		node := asterisque.NewNode(c.hook())
		require.NoError(t, node.Shutdown(testkit.Background))
		require.NoError(t, node.Shutdown(testkit.Background))
		node.Close()
		synctest.Wait()
		require.Equal(t, [][2]int{{0, 0}, {0, 0}}, c.list(), "at the begin and at the end, without anything to wait for")
	})
}

// A Shutdown hook that blocks or panics delays nothing.
func TestProgress_HookMisbehaves(t *testing.T) {
	stuck := func(hold chan struct{}) { <-hold }
	for name, misbehaves := range map[string]func(chan struct{}){
		"blocks":             stuck,
		"panics":             func(chan struct{}) { panic("x") },
		"ends its goroutine": func(chan struct{}) { runtime.Goexit() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				var other chronicle
				hold := make(chan struct{})
				node := asterisque.NewNode(
					asterisque.WithHooks(asterisque.Hooks{Shutdown: func(asterisque.ShutdownProgress) { misbehaves(hold) }}),
					other.hook(), asterisque.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				begin := time.Now()
				require.NoError(t, node.Shutdown(testkit.Background))
				require.Zero(t, time.Since(begin))
				close(hold)
				synctest.Wait()
				require.Len(t, other.told, 2, "other hooks are called nevertheless")
			})
		})
	}
}

// A Shutdown hook may close the node.
func TestProgress_HookCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, _ := endless()
		var there *asterisque.Node
		var dialled *asterisque.Session
		_, there, dialled, _ = testkit.TwoNodes(t, svc, asterisque.WithHooks(asterisque.Hooks{Shutdown: func(asterisque.ShutdownProgress) { there.Close() }}))
		_, err := dialled.Open(testkit.Background, 70, nil)
		require.NoError(t, err)
		synctest.Wait()
		begin := time.Now()
		require.NoError(t, there.Shutdown(testkit.Background))
		require.Less(t, time.Since(begin), 3*time.Second)
	})
}

// A node reports that it drains.
func TestNode_Draining(t *testing.T) {
	for name, end := range map[string]func(*asterisque.Node) error{
		"Close":    (*asterisque.Node).Close,
		"Shutdown": func(n *asterisque.Node) error { return n.Shutdown(testkit.Background) },
	} {
		t.Run(name, func(t *testing.T) {
			node := asterisque.NewNode()
			select {
			case <-node.Draining():
				t.Fatal("not yet")
			default:
			}
			require.NoError(t, end(node))
			require.NoError(t, end(node))
			<-node.Draining()
		})
	}
}
