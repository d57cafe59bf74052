package pool_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/pool"
)

// called makes a call on a goroutine of its own, which ends with the call.
func called(on asterisque.Caller, opts ...asterisque.CallOption) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := whoami.Call(background, on, 0, opts...)
		ended <- err
	}()
	return ended
}

// TestSets_AwaitedServerLeaves has an unreachable server that leaves the set.
func TestSets_AwaitedServerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLagging(t, "attack-stays", 0)
		defer s.node.Close()
		resolve := make(sets)
		go func() { resolve <- []string{s.url, "mem://attack-away"} }() // ends with New
		p := newPoolOf(t, resolve.resolve, pool.Config{})
		ended := called(p.At("mem://attack-away"))
		synctest.Wait()
		resolve <- []string{s.url}
		err := <-ended
		require.ErrorIs(t, err, asterisque.ErrUnavailable)
		require.ErrorContains(t, err, "is not in the pool")
		require.True(t, asterisque.Repeatable(err))
		p.Close()
	})
}

// TestSets_AwaitedServerStays has several sets with the same server.
func TestSets_AwaitedServerStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := "mem://attack-back"
		resolve := make(sets)
		go func() { resolve <- []string{first} }() // ends with New
		p := newPoolOf(t, resolve.resolve, pool.Config{})
		ended := []<-chan error{called(p.At(first)), called(p), called(p.Sticky())}
		synctest.Wait()
		resolve <- []string{"mem://attack-other", first}
		resolve <- []string{first}
		s := newLagging(t, "attack-back", 0)
		defer s.node.Close()
		for _, one := range ended {
			require.NoError(t, <-one)
		}
		p.Close()
	})
}

// TestSets_ManyChanges has callers of all kinds while servers join and leave.
func TestSets_ManyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var urls []string
		for i := range 4 {
			s := newLagging(t, fmt.Sprint("attack-set-", i), time.Millisecond)
			defer s.node.Close()
			urls = append(urls, s.url)
		}
		resolve := make(sets)
		go func() { resolve <- urls }() // ends with New
		p := newPoolOf(t, resolve.resolve, pool.Config{Connection: asterisque.ReconnectConfig{First: time.Millisecond}})
		over, all := make(chan struct{}), sync.WaitGroup{}
		for i, on := range []asterisque.Caller{p, p, p.ByKey("a"), p.ByKey("b"), p.Sticky(), p.At(urls[0])} {
			all.Go(func() {
				for {
					select {
					case <-over:
						return
					default:
					}
					if _, err := whoami.Call(background, on, 0); err != nil {
						t.Error(i, err)
						return
					}
				}
			})
		}
		for i := range 1000 {
			resolve <- append([]string{urls[0]}, urls[1+i%3:]...)
			if i%10 == 0 {
				fakeclock.Sleep(time.Millisecond)
			}
		}
		resolve <- urls
		close(over)
		all.Wait()
		fakeclock.Sleep(time.Second)
		require.Len(t, p.Servers(), 4)
		for _, s := range p.Servers() {
			require.True(t, s.Ready)
			require.Zero(t, s.Outstanding)
		}
		p.Close()
	})
}

// TestNew_NodeCannotConnect has a closed node, and one with invalid options.
func TestNew_NodeCannotConnect(t *testing.T) {
	closed, invalid := asterisque.NewNode(), asterisque.NewNode(asterisque.WithMaxOutstanding(1, -1))
	closed.Close()
	defer invalid.Close()
	for name, node := range map[string]*asterisque.Node{"closed": closed, "bad options": invalid} {
		t.Run(name, func(t *testing.T) {
			_, err := pool.New(background, node, pool.Fixed("mem://attack-none"), pool.Config{})
			require.ErrorIs(t, err, asterisque.ErrUnavailable)
			require.ErrorContains(t, err, "the node of the pool connects to nothing")

			p, err := pool.New(background, node, pool.Fixed("mem://attack-none"), pool.Config{Connection: asterisque.ReconnectConfig{Background: true}})
			require.NoError(t, err)
			defer p.Close()
			_, err = whoami.Call(background, p, 0)
			require.ErrorIs(t, err, asterisque.ErrUnavailable)
			require.Error(t, p.Err())
		})
	}
}

// TestShutdown_LeavingServers has a running call on a server that has left the set.
func TestShutdown_LeavingServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, other := newLagging(t, "attack-left", 3*time.Second), newLagging(t, "attack-came", 0)
		defer s.node.Close()
		defer other.node.Close()
		resolve := make(sets)
		go func() { resolve <- []string{s.url} }() // ends with New
		p := newPoolOf(t, resolve.resolve, pool.Config{})
		ended := called(p)
		synctest.Wait()
		resolve <- []string{other.url}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(background, 10*time.Second)
		defer cancel()
		require.NoError(t, p.Shutdown(ctx))
		require.NoError(t, <-ended)
		_, err := whoami.Call(background, p, 0)
		require.ErrorIs(t, err, asterisque.ErrUnavailable)
		require.NoError(t, p.Shutdown(ctx), "again")
	})
}

// TestShutdown_ContextEnds has a call that takes longer than the context of the Shutdown.
func TestShutdown_ContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLagging(t, "attack-long", time.Minute)
		defer s.node.Close()
		p := newPool(t, []string{s.url}, pool.Config{})
		ended := called(p)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		begin := time.Now()
		require.ErrorIs(t, p.Shutdown(ctx), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(begin))
		require.Error(t, <-ended)
		fakeclock.Sleep(time.Minute) // until the handler, which ignores its context, returns
	})
}
