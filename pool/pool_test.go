package pool_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pool"
)

// callers are goroutines that call whoami, one call after the other.
type callers struct {
	tally
	running sync.WaitGroup
	over    atomic.Bool
	began   atomic.Int64
}

func (c *callers) start(n int, on asterisque.Caller, ms int) {
	for range n {
		c.running.Go(func() {
			for !c.over.Load() {
				ctx, cancel := context.WithTimeout(background, hung)
				c.began.Add(1)
				c.note(whoami.Call(ctx, on, ms))
				cancel()
			}
		})
	}
}

func (c *callers) stop() {
	c.over.Store(true)
	c.running.Wait()
}

// goOn waits until n more calls have been answered.
func (c *callers) goOn(t testing.TB, n int) {
	t.Helper()
	before := c.total()
	require.Eventually(t, func() bool { return c.total() >= before+n }, hung, time.Millisecond)
}

func TestShares_Even(t *testing.T) {
	_, urls := three(t)
	p := newPool(t, urls, pool.Config{})
	ready(t, p, 3)
	var c callers
	c.start(10, p, 0)
	c.goOn(t, 300)
	c.stop()
	require.Empty(t, c.failed)
	require.Len(t, c.answered, 3)
}

// TestPool_KilledServer has 50 callers on three servers, one of which is killed.
func TestPool_KilledServer(t *testing.T) {
	servers, urls := three(t)
	p := newPool(t, urls, pool.Config{})
	ready(t, p, 3)
	var c callers
	c.start(50, p, 2)
	c.goOn(t, 300)
	running := 0
	for _, s := range servers[1].node.Sessions() {
		for _, w := range s.Pipes() {
			_ = w
			running++
		}
	}
	servers[1].kill()
	c.goOn(t, 50) // calls that ran on it have ended by then
	c.mu.Lock()
	failed := c.failed
	c.mu.Unlock()
	c.goOn(t, 1000)
	c.stop()
	require.Equal(t, len(failed), len(c.failed), "every later call succeeds")
	require.LessOrEqual(t, len(failed), 50)
	for _, err := range c.failed {
		require.False(t, asterisque.Repeatable(err), "it may have run there, or another server would have got it: %v", err)
	}
}

// TestPool_RollingRestart has ten rounds of graceful restarts of all three servers.
func TestPool_RollingRestart(t *testing.T) {
	t.Parallel()
	servers, urls := three(t)
	p := newPool(t, urls, pool.Config{})
	ready(t, p, 3)
	var c callers
	c.start(50, p, 1)
	for range 10 {
		for _, s := range servers {
			s.restart()
			c.goOn(t, 10)
		}
	}
	c.stop()
	require.Empty(t, c.failed)
}

// TestPool_WaitsForServer has a pool with a single server that starts later.
func TestPool_WaitsForServer(t *testing.T) {
	s := newServer(t, "late")
	s.kill()
	p := newPool(t, []string{s.url}, pool.Config{Connection: asterisque.ReconnectConfig{First: 10 * time.Millisecond}})
	got := make(chan string)
	go func() {
		name, err := whoami.Call(background, p, 0)
		if err != nil {
			name = err.Error()
		}
		got <- name
	}()
	_, err := whoami.Call(background, p, 0, asterisque.WithFailFast())
	require.ErrorIs(t, err, asterisque.ErrUnavailable)
	require.True(t, asterisque.Repeatable(err))

	_, err = whoami.Call(background, p, 0, asterisque.WithTTL(50*time.Millisecond))
	require.ErrorIs(t, err, asterisque.ErrExpired)
	require.True(t, asterisque.Repeatable(err))
	var o *asterisque.NotConnectedError
	require.ErrorAs(t, err, &o)
	require.ErrorContains(t, err, "any of the 1 servers of the pool since ")
	require.ErrorContains(t, err, s.url)
	require.ErrorContains(t, err, "refused")

	s.start()
	require.Equal(t, "late", <-got)
}

func TestNew_RefusesABadReconnection(t *testing.T) {
	node := asterisque.NewNode()
	defer node.Close()
	how := pool.Config{Connection: asterisque.ReconnectConfig{First: 15}}
	_, err := pool.New(t.Context(), node, pool.Fixed("tcp://127.0.0.1:1"), how)
	require.ErrorContains(t, err, "ReconnectConfig.First is 15ns, less than 1ms: did you mean 15 * time.Second?")
}
