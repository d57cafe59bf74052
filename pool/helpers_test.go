package pool_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pool"
	"github.com/asterisque-go/asterisque/wire"
)

var background = context.Background()

// hung is the time limit for an event that happens in moments.
const hung = 2 * time.Minute

// whoami answers with the name of the server, after the given number of milliseconds.
var whoami = asterisque.Func[int, string](1, "whoami")

// server is a node that listens at one address, and can be replaced.
type server struct {
	t    testing.TB
	name string
	url  string
	svc  *asterisque.Service
	opts []asterisque.Option

	node *asterisque.Node
	over chan struct{} // closed when node no longer listens
}

// bubbled is a test in a bubble of synctest, with servers that listen in memory.
type bubbled struct{ testing.TB }

// inBubble runs test with the clock of a bubble: waits of seconds take no real time, and load
// cannot shift one time against another.
func inBubble(t *testing.T, test func(t testing.TB)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(bubbled{t}) })
}

var inMemoryServers atomic.Int64

// newServer starts a server with the function whoami, which ends with the test. It listens on TCP
// loopback, or in memory for a test in a bubble.
func newServer(t testing.TB, name string, opts ...asterisque.Option) *server {
	s := &server{t: t, name: name, url: "tcp://127.0.0.1:0", svc: asterisque.NewService(), opts: opts}
	if _, ok := t.(bubbled); ok {
		s.url = fmt.Sprint("mem://pool-", inMemoryServers.Add(1))
	}
	whoami.Handle(s.svc, func(ctx context.Context, ms int) (string, error) {
		if ms > 0 {
			select {
			case <-time.After(time.Duration(ms) * time.Millisecond):
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		return name, nil
	})
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *server) start() {
	ln, err := wire.Listen(background, s.url, wire.Options{})
	require.NoError(s.t, err)
	s.url = ln.URL()
	node, over := asterisque.NewNode(append([]asterisque.Option{asterisque.WithService(s.svc)}, s.opts...)...), make(chan struct{})
	s.node, s.over = node, over
	go func() { // ends with the node
		defer close(over)
		node.Serve(background, ln)
	}()
}

// kill ends the server without a shutdown.
func (s *server) kill() {
	s.node.Close()
	<-s.over
}

// restart replaces the server gracefully.
func (s *server) restart() {
	ctx, cancel := context.WithTimeout(background, hung)
	defer cancel()
	require.NoError(s.t, s.node.Shutdown(ctx))
	<-s.over
	s.start()
}

// three starts three servers: a, b and c.
func three(t testing.TB) (servers []*server, urls []string) {
	for _, name := range []string{"a", "b", "c"} {
		s := newServer(t, name)
		servers, urls = append(servers, s), append(urls, s.url)
	}
	return servers, urls
}

// newPool returns a pool of servers that never change, which ends with the test.
func newPool(t testing.TB, urls []string, how pool.Config) *pool.Pool {
	return newPoolOf(t, pool.Fixed(urls...), how)
}

func newPoolOf(t testing.TB, r pool.Resolver, how pool.Config) *pool.Pool {
	t.Helper()
	node := asterisque.NewNode()
	p, err := pool.New(background, node, r, how)
	require.NoError(t, err)
	t.Cleanup(func() { p.Close(); node.Close() })
	return p
}

// ready waits until n servers of p take calls.
func ready(t testing.TB, p *pool.Pool, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		now := 0
		for _, s := range p.Servers() {
			if s.Ready {
				now++
			}
		}
		return now == n
	}, hung, time.Millisecond)
}

// tally counts the answers of each server, and records errors.
type tally struct {
	mu       sync.Mutex
	answered map[string]int // guarded by mu, as failed
	failed   []error
}

func (c *tally) note(name string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failed = append(c.failed, err)
		return
	}
	if c.answered == nil {
		c.answered = make(map[string]int)
	}
	c.answered[name]++
}

func (c *tally) total() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.answered {
		n += one
	}
	return n
}
