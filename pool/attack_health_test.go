package pool_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/pool"
)

// TestHealth_ServerRestarts has a server that restarts repeatedly, each time with other states,
// while OnState does not return.
func TestHealth_ServerRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := make(chan struct{})
		p := newPool(t, []string{"mem://attack-health"}, pool.Config{Health: []string{""}, Connection: asterisque.ReconnectConfig{
			First:   100 * time.Millisecond,
			OnState: func(*asterisque.Connection, asterisque.ConnectionState, error) { <-never },
		}})
		for i := range 10 {
			h, svc := asterisque.NewHealth(), asterisque.NewService()
			svc.Health(h)
			if i%2 == 0 {
				require.NoError(t, h.Set("", asterisque.HealthNotServing))
			}
			_, node := inMemory(t, "attack-health", svc)
			require.Eventually(t, func() bool { return len(node.Sessions()) > 0 }, hung, time.Millisecond)
			fakeclock.Sleep(2 * lookAgain)
			require.Equal(t, i%2 == 1, only(t, p).Serving, "after %d restarts", i)
			fakeclock.Sleep(2 * time.Second)
			require.NoError(t, node.Shutdown(background))
		}
		close(never)
		p.Close()
	})
}

// lookAgain is the polling interval of the pool.
const lookAgain = 50 * time.Millisecond

// TestHealth_WatchRefused has a server that rejects the watch each time.
func TestHealth_WatchRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, asked := asterisque.NewService(), new(atomic.Int64)
		svc.Health(asterisque.NewHealth())
		url, node := inMemory(t, "attack-watch", svc, asterisque.WithInboundInterceptors(func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			if c.Inbound() {
				asked.Add(1)
				return c.Refuse(asterisque.ErrOverloaded)
			}
			return next(ctx, c)
		}))
		defer node.Close()
		p := newPool(t, []string{url}, pool.Config{Health: []string{""}})
		fakeclock.Sleep(time.Hour)
		require.LessOrEqual(t, asked.Load(), int64(130))
		require.GreaterOrEqual(t, asked.Load(), int64(60))
		require.True(t, only(t, p).Serving, "it has said nothing")
		p.Close()
	})
}

// TestPool_ServerEndsSessions has a single server that shuts each session down at once.
func TestPool_ServerEndsSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sessions atomic.Int64
		url, node := inMemory(t, "attack-drains", asterisque.NewService())
		defer node.Close()
		over := make(chan struct{})
		go func() { // ends with over
			for {
				for _, s := range node.Sessions() {
					sessions.Add(1)
					s.Shutdown(background)
				}
				select {
				case <-over:
					return
				case <-time.After(time.Millisecond):
				}
			}
		}()
		p := newPool(t, []string{url}, pool.Config{})
		begin := time.Now()
		_, err := whoami.Call(background, p, 0, asterisque.WithTTL(time.Minute))
		require.Error(t, err)
		if asterisque.Repeatable(err) {
			require.LessOrEqual(t, sessions.Load(), int64(65))
			require.LessOrEqual(t, time.Since(begin), time.Minute)
		}
		close(over)
		p.Close()
	})
}
