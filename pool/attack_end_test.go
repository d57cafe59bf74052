package pool_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pool"
)

// TestPool_EndedByHandler has a server that calls back, and a handler that ends the pool in
// different ways.
func TestPool_EndedByHandler(t *testing.T) {
	back := asterisque.Func[string, string](3, "back")
	leave := asterisque.Func[string, string](4, "leave")
	for name, end := range map[string]func(ctx context.Context, p *pool.Pool){
		"Shutdown":                func(ctx context.Context, p *pool.Pool) { p.Shutdown(ctx) },
		"Shutdown, twice":         func(ctx context.Context, p *pool.Pool) { p.Shutdown(ctx); p.Shutdown(ctx) },
		"Close":                   func(_ context.Context, p *pool.Pool) { p.Close() },
		"Shutdown with its own":   func(_ context.Context, p *pool.Pool) { go p.Shutdown(background) },
		"Close on another, twice": func(_ context.Context, p *pool.Pool) { go p.Close(); go p.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, "a")
			s.kill()
			s.svc = asterisque.NewService()
			back.Handle(s.svc, func(ctx context.Context, text string) (string, error) {
				return leave.Call(ctx, asterisque.SessionOf(ctx), text)
			})
			s.start()
			var p *pool.Pool
			made := make(chan struct{})
			own := asterisque.NewService()
			leave.Handle(own, func(ctx context.Context, text string) (string, error) {
				<-made
				end(ctx, p)
				return text, nil
			})
			node := asterisque.NewNode(asterisque.WithService(own))
			defer node.Close()
			var err error
			p, err = pool.New(background, node, pool.Fixed(s.url), pool.Config{})
			require.NoError(t, err)
			defer p.Close()
			close(made)
			ctx, cancel := context.WithTimeout(background, hung)
			defer cancel()
			answer, err := back.Call(ctx, p, "bye")
			if name == "Shutdown" || name == "Shutdown, twice" || name == "Shutdown with its own" {
				require.NoError(t, err)
				require.Equal(t, "bye", answer)
			} else {
				require.NotErrorIs(t, err, context.DeadlineExceeded, "the call ends with its session")
			}
			require.Eventually(t, func() bool { return p.Err() != nil }, hung, time.Millisecond)
		})
	}
}

// TestPool_NoLeak begins and ends pools of running servers, and of one that is gone. The leak check
// at the end of the tests finds goroutines that are left.
func TestPool_NoLeak(t *testing.T) {
	s := newServer(t, "a")
	gone := newServer(t, "b")
	gone.kill()
	node := asterisque.NewNode()
	defer node.Close()
	for range 1000 {
		p, err := pool.New(background, node, pool.Fixed(s.url, gone.url), pool.Config{Health: []string{""}})
		require.NoError(t, err)
		require.NoError(t, p.Close())
	}
}

// TestDurable_StaysOnServer restarts the server of a durable call while it runs, although another
// server is available.
func TestDurable_StaysOnServer(t *testing.T) {
	inBubble(t, func(t testing.TB) {
		servers, urls := three(t)
		p := newPool(t, urls, pool.Config{})
		ready(t, p, 3)
		for range 5 {
			name, err := whoami.Call(background, p, 1, asterisque.WithDurable())
			require.NoError(t, err)
			require.Contains(t, []string{"a", "b", "c"}, name)
		}
		answer := make(chan string)
		go func() { // ends with the call
			name, err := whoami.Call(background, p, 500, asterisque.WithDurable(), asterisque.WithTTL(hung))
			if err != nil {
				name = err.Error()
			}
			answer <- name
		}()
		var on *server
		require.Eventually(t, func() bool {
			for _, v := range p.Servers() {
				for i, u := range urls {
					if v.URL == u && v.Outstanding == 1 {
						on = servers[i]
					}
				}
			}
			return on != nil && len(on.node.Sessions()) > 0 && on.node.Sessions()[0].Stats().Running == 1
		}, hung, time.Millisecond)
		on.node.Sessions()[0].Close()
		require.Equal(t, on.name, <-answer, "which alone remembers that it runs")
	})
}
