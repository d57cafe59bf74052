package pool_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pool"
)

// TestSticky_ConcurrentFirstCalls makes the first calls of a Sticky at the same time.
func TestSticky_ConcurrentFirstCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var urls []string
		for i := range 5 {
			s := newLagging(t, fmt.Sprint("attack-sticky-", i), time.Second)
			defer s.node.Close()
			urls = append(urls, s.url)
		}
		p := newPool(t, urls, pool.Config{})
		synctest.Wait()
		sticky := p.Sticky()
		var answers tally
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { answers.note(whoami.Call(background, sticky, 0)) })
		}
		all.Wait()
		require.Empty(t, answers.failed)
		require.Len(t, answers.answered, 1)
		p.Close()
	})
}

// TestByKey_Restart restarts the server of a key gracefully.
func TestByKey_Restart(t *testing.T) {
	servers, urls := three(t)
	p := newPool(t, urls, pool.Config{Connection: asterisque.ReconnectConfig{First: 20 * time.Millisecond}})
	ready(t, p, 3)
	key := p.ByKey("order 7")
	owner, err := whoami.Call(background, key, 0)
	require.NoError(t, err)
	var c callers
	c.start(10, key, 1)
	for range 3 {
		c.goOn(t, 50)
		servers[owner[0]-'a'].restart()
	}
	c.goOn(t, 50)
	c.stop()
	require.Empty(t, c.failed)
	require.Len(t, c.answered, 1)
}

// TestByKey_ServerAway has 20 servers, a subset of one, and calls with the key of an unreachable
// server.
func TestByKey_ServerAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var urls []string
		byURL := make(map[string]*lagging)
		for i := range 20 {
			s := newLagging(t, fmt.Sprint("attack-key-", i), 0)
			defer s.node.Close()
			urls, byURL[s.url] = append(urls, s.url), s
		}
		p := newPool(t, urls, pool.Config{Subset: 1})
		synctest.Wait()
		i := 0
		for ; ; i++ { // a key of a server outside of the subset
			name, err := whoami.Call(background, p.ByKey(fmt.Sprint(i)), 0)
			require.NoError(t, err)
			if len(connected(p)) == 2 {
				byURL["mem://"+name].node.Close()
				break
			}
			p.Close()
			p = newPool(t, urls, pool.Config{Subset: 1})
			synctest.Wait()
		}
		synctest.Wait()
		begin := time.Now()
		for range 10 {
			_, err := whoami.Call(background, p.ByKey(fmt.Sprint(i)), 0)
			require.NoError(t, err)
		}
		require.LessOrEqual(t, time.Since(begin), 3*time.Second)
		require.GreaterOrEqual(t, time.Since(begin), 1900*time.Millisecond)
		require.LessOrEqual(t, len(connected(p)), 3)

		_, err := whoami.Call(background, p.ByKey(fmt.Sprint(i)), 0, asterisque.WithFailFast())
		require.NoError(t, err, "the next one is there")
		p.Close()
	})
}

// connected returns the URLs of the servers with a connection.
func connected(p *pool.Pool) (urls []string) {
	for _, s := range p.Servers() {
		if s.Connected {
			urls = append(urls, s.URL)
		}
	}
	return urls
}

// TestByKey_NoServer has servers that are unreachable for long.
func TestByKey_NoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var urls []string
		for i := range 1024 {
			urls = append(urls, fmt.Sprint("mem://attack-no-key-", i))
		}
		p := newPool(t, urls, pool.Config{Subset: 1})
		begin := time.Now()
		_, err := whoami.Call(background, p.ByKey("k"), 0, asterisque.WithTTL(10*time.Second))
		require.ErrorIs(t, err, asterisque.ErrExpired)
		require.Equal(t, 10*time.Second, time.Since(begin))
		require.LessOrEqual(t, len(connected(p)), 7, "one every two seconds")
		require.False(t, slices.Contains(connected(p), ""))
		p.Close()
	})
}

// TestByKey_Refused has two servers, and the server of the key rejects calls.
func TestByKey_Refused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newLagging(t, "attack-refuse-a", 0), newLagging(t, "attack-refuse-b", 0)
		defer a.node.Close()
		defer b.node.Close()
		p := newPool(t, []string{a.url, b.url}, pool.Config{Subset: 1})
		synctest.Wait()
		for i := range 10 {
			a.refuse.Store(i%2 == 0)
			b.refuse.Store(i%2 == 1)
			_, err := whoami.Call(background, p.ByKey(fmt.Sprint(i/2)), 0)
			require.NoError(t, err)
		}
		p.Close()
	})
}
