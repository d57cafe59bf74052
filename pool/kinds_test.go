package pool_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pool"
)

// sets is a Resolver that yields the sets that a test sends.
type sets chan []string

func (s sets) resolve(ctx context.Context) iter.Seq2[[]pool.Address, error] {
	return func(yield func([]pool.Address, error) bool) {
		for {
			select {
			case urls := <-s:
				var set []pool.Address
				for _, u := range urls {
					set = append(set, pool.Address{URL: u})
				}
				if !yield(set, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func TestByKey_SameServer(t *testing.T) {
	inBubble(t, func(t testing.TB) {
		servers, urls := three(t)
		p, other := newPool(t, urls, pool.Config{}), newPool(t, []string{urls[2], urls[0], urls[1]}, pool.Config{})
		owners := make(map[string]string)
		for i := range 60 {
			key := fmt.Sprint("key ", i)
			name, err := whoami.Call(background, p.ByKey(key), 0)
			require.NoError(t, err)
			owners[key] = name
			name, err = whoami.Call(background, other.ByKey(key), 0)
			require.NoError(t, err)
			require.Equal(t, owners[key], name, "another client agrees")
		}
		counts := make(map[string]int)
		for _, name := range owners {
			counts[name]++
		}
		require.Len(t, counts, 3)
		servers[1].kill()
		ready(t, p, 2)
		for key, owner := range owners {
			ctx, cancel := context.WithTimeout(background, hung)
			name, err := whoami.Call(ctx, p.ByKey(key), 0)
			cancel()
			require.NoError(t, err)
			if owner != "b" {
				require.Equal(t, owner, name, "only the keys of the server that is away move")
			} else {
				require.NotEqual(t, "b", name)
			}
		}
	})
}

func TestAt_OneServer(t *testing.T) {
	t.Parallel()
	servers, urls := three(t)
	p := newPool(t, urls, pool.Config{})
	for i, name := range []string{"a", "b", "c"} {
		got, err := whoami.Call(background, p.At(urls[i]), 0)
		require.NoError(t, err)
		require.Equal(t, name, got)
	}
	servers[0].kill()
	_, err := whoami.Call(background, p.At(urls[0]), 0, asterisque.WithTTL(100*time.Millisecond))
	require.ErrorIs(t, err, asterisque.ErrExpired)
	require.True(t, asterisque.Repeatable(err))
	_, err = whoami.Call(background, p.At(urls[0]), 0, asterisque.WithFailFast())
	require.ErrorIs(t, err, asterisque.ErrUnavailable)
	servers[0].start()
	got, err := whoami.Call(background, p.At(urls[0]), 0)
	require.NoError(t, err)
	require.Equal(t, "a", got)

	_, err = whoami.Call(background, p.At("tcp://127.0.0.1:1"), 0)
	require.ErrorIs(t, err, asterisque.ErrUnavailable)
	require.ErrorContains(t, err, "tcp://127.0.0.1:1 is not in the pool")
	require.True(t, asterisque.Repeatable(err))
}

func TestAll_Concurrent(t *testing.T) {
	t.Parallel()
	servers, urls := three(t)
	servers[1].kill()
	p := newPool(t, urls, pool.Config{Subset: 1})
	results := pool.All(background, p, func(ctx context.Context, on asterisque.Caller) (string, error) {
		return whoami.Call(ctx, on, 0, asterisque.WithTTL(200*time.Millisecond))
	})
	require.Len(t, results, 3)
	found := make(map[string]pool.Result[string])
	for _, r := range results {
		found[r.URL] = r
	}
	require.Equal(t, "a", found[urls[0]].Value)
	require.NoError(t, found[urls[0]].Err)
	require.ErrorIs(t, found[urls[1]].Err, asterisque.ErrExpired)
	require.Equal(t, "c", found[urls[2]].Value)

	for _, r := range pool.All(background, p, func(context.Context, asterisque.Caller) (int, error) { panic("mine") }) {
		require.ErrorIs(t, r.Err, asterisque.ErrPanicked)
	}
}

func TestSticky_StaysOnServer(t *testing.T) {
	servers, urls := three(t)
	p := newPool(t, urls, pool.Config{})
	ready(t, p, 3)
	sticky := p.Sticky()
	first, err := whoami.Call(background, sticky, 0)
	require.NoError(t, err)
	for range 50 {
		name, err := whoami.Call(background, sticky, 0)
		require.NoError(t, err)
		require.Equal(t, first, name)
	}
	servers[first[0]-'a'].kill()
	ready(t, p, 2)
	second, err := whoami.Call(background, sticky, 0)
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	servers[first[0]-'a'].start()
	ready(t, p, 3)
	for range 50 {
		name, err := whoami.Call(background, sticky, 0)
		require.NoError(t, err)
		require.Equal(t, second, name)
	}
}

// TestSubset_Stable has clients that connect to two of three servers.
func TestSubset_Stable(t *testing.T) {
	servers, urls := three(t)
	node := asterisque.NewNode(asterisque.WithID("client 7"))
	defer node.Close()
	connected := func() (list []string) {
		p, err := pool.New(background, node, pool.Fixed(urls...), pool.Config{Subset: 2})
		require.NoError(t, err)
		defer p.Close()
		ready(t, p, 2)
		for _, s := range p.Servers() {
			if s.Connected {
				list = append(list, s.URL)
			}
		}
		return list
	}
	first := connected()
	require.Len(t, first, 2)
	require.Equal(t, first, connected(), "the same ones each time")
	for _, s := range servers {
		require.Eventually(t, func() bool { return len(s.node.Sessions()) == 0 }, hung, time.Millisecond)
	}
}

// TestAt_OneConnection calls a server outside of the subset.
func TestAt_OneConnection(t *testing.T) {
	servers, urls := three(t)
	p := newPool(t, urls, pool.Config{Subset: 1})
	results := make(chan error, 50)
	for range 50 {
		go func() { // ends with the calls
			var last error
			for _, u := range urls {
				if _, err := whoami.Call(background, p.At(u), 0); err != nil {
					last = err
				}
			}
			results <- last
		}()
	}
	for range 50 {
		require.NoError(t, <-results)
	}
	for _, s := range servers {
		require.Len(t, s.node.Sessions(), 1)
	}
}

// TestSets_Change changes the set of the Resolver while calls are made.
func TestSets_Change(t *testing.T) {
	_, urls := three(t)
	s := make(sets)
	go func() { s <- urls[:1] }() // ends with New
	p := newPoolOf(t, s.resolve, pool.Config{})
	var c callers
	c.start(20, p, 1)
	for _, set := range [][]string{urls[1:2], urls, urls[2:], {urls[0], urls[2]}, urls[1:]} {
		c.goOn(t, 50)
		s <- set
		require.Eventually(t, func() bool { return len(p.Servers()) == len(set) }, hung, time.Millisecond)
	}
	c.goOn(t, 50)
	c.stop()
	require.Empty(t, c.failed)
	require.Len(t, c.answered, 3)
}

// TestSets_LeavingServerDrains has a running call on a server that leaves the set.
func TestSets_LeavingServerDrains(t *testing.T) {
	t.Parallel()
	servers, urls := three(t)
	s := make(sets)
	go func() { s <- urls[:1] }() // ends with New
	p := newPoolOf(t, s.resolve, pool.Config{})
	ready(t, p, 1)
	got := make(chan string)
	go func() { // ends with the call
		name, err := whoami.Call(background, p, 300)
		if err != nil {
			name = err.Error()
		}
		got <- name
	}()
	require.Eventually(t, func() bool {
		sessions := servers[0].node.Sessions()
		return len(sessions) == 1 && sessions[0].Stats().Running == 1
	}, hung, time.Millisecond)
	s <- urls[1:2]
	require.Eventually(t, func() bool {
		name, err := whoami.Call(background, p, 0)
		return err == nil && name == "b"
	}, hung, time.Millisecond)
	require.Equal(t, "a", <-got)
}

// TestHealth_NotServing has servers with a health service, and one without.
func TestHealth_NotServing(t *testing.T) {
	a, b, c := newServer(t, "a"), newServer(t, "b"), newServer(t, "c")
	healths := make([]*asterisque.Health, 2)
	for i, s := range []*server{a, b} {
		s.kill()
		healths[i] = asterisque.NewHealth()
		s.svc = asterisque.NewService()
		whoami.Handle(s.svc, func(context.Context, int) (string, error) { return s.name, nil })
		s.svc.Health(healths[i])
		s.start()
	}
	p := newPool(t, []string{a.url, b.url, c.url}, pool.Config{Health: []string{"", "database"}})
	ready(t, p, 3)
	require.NoError(t, healths[0].Set("database", asterisque.HealthNotServing))
	require.NoError(t, healths[1].Set("something else", asterisque.HealthNotServing))
	ready(t, p, 2)
	var callers callers
	callers.start(10, p, 0)
	callers.goOn(t, 200)
	callers.stop()
	require.Empty(t, callers.failed)
	require.Zero(t, callers.answered["a"])
	require.NotZero(t, callers.answered["b"])
	require.NotZero(t, callers.answered["c"])
	for _, s := range p.Servers() {
		require.Equal(t, s.URL != a.url, s.Serving)
	}
	require.NoError(t, healths[0].Set("database", asterisque.HealthServing))
	ready(t, p, 3)
	name, err := whoami.Call(background, p.At(a.url), 0)
	require.NoError(t, err)
	require.Equal(t, "a", name)
}
