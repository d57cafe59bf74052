//go:build unix

package restart

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/pool"
)

// pooled is calls with a time to live, one after the other on each of many goroutines, on a Pool of
// three servers.
type pooled struct {
	*pool.Pool
	t       *testing.T
	servers []*process
	urls    []string
	done    sync.WaitGroup

	failed atomic.Int64

	mu     sync.Mutex
	served map[int]int // calls by server; guarded by mu
}

// newPooled starts servers and begins to call them. Those at stopped do not run at first.
func newPooled(t *testing.T, silence time.Duration, stopped ...int) *pooled {
	if race.Enabled {
		t.Skip("it waits for half a minute, and its goroutines are those of the other tests")
	}
	p := &pooled{t: t, served: make(map[int]int)}
	for i := range 3 {
		file, url := socket(t)
		s := start(t, inherited, file)
		t.Cleanup(func() { s.signal(syscall.SIGCONT) })
		if slices.Contains(stopped, i) {
			s.signal(syscall.SIGSTOP)
		}
		p.servers, p.urls = append(p.servers, s), append(p.urls, url)
	}
	node := asterisque.NewNode(asterisque.WithTimeouts(asterisque.Timeouts{Ping: silence / 4, Silence: silence, Handshake: silence}))
	how := pool.Config{Connection: asterisque.ReconnectConfig{First: 10 * time.Millisecond, Most: 100 * time.Millisecond}}
	all, err := pool.New(context.Background(), node, pool.Fixed(p.urls...), how)
	require.NoError(t, err)
	p.Pool = all
	t.Cleanup(func() {
		all.Close()
		node.Close()
	})
	over := new(atomic.Bool)
	for range callers {
		p.done.Go(func() {
			for !over.Load() {
				p.call()
			}
		})
	}
	t.Cleanup(func() {
		over.Store(true)
		p.done.Wait()
	})
	return p
}

func (p *pooled) call() {
	pid, err := work.Call(context.Background(), p, 1, asterisque.WithTTL(time.Second))
	if err != nil {
		p.failed.Add(1)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.served[pid]++
}

// answers returns how many calls each server has answered.
func (p *pooled) answers() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := make([]int, len(p.servers))
	for i, s := range p.servers {
		n[i] = p.served[s.pid]
	}
	return n
}

// await waits until something is so.
func (p *pooled) await(what string, so func() bool) {
	p.t.Helper()
	require.Eventually(p.t, so, 2*time.Minute, time.Millisecond, what)
}

// awaitAnswers waits until each of these servers has answered some more calls, and of all that come
// meanwhile a fair share.
func (p *pooled) awaitAnswers(what string, of ...int) {
	p.t.Helper()
	before := p.answers()
	p.await(what, func() bool {
		now, total := p.answers(), 0
		for i := range now {
			now[i] -= before[i]
			total += now[i]
		}
		if total > 5000 { // those of before weigh nothing any more
			before = p.answers()
		}
		return !slices.ContainsFunc(of, func(i int) bool { return now[i] < 100 || now[i] < total/6 })
	})
}

// server returns what the Pool knows of a server.
func (p *pooled) server(i int) pool.Server {
	all := p.Servers()
	return all[slices.IndexFunc(all, func(s pool.Server) bool { return s.URL == p.urls[i] })]
}

func TestPool_ServerStoppedThatGoesOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		silence time.Duration
		until   func(p *pooled) bool // it goes on
	}{
		"while it rests": {time.Hour, func(p *pooled) bool {
			// the other calls may avoid it
			work.Call(context.Background(), p.At(p.urls[0]), 1, asterisque.WithTTL(50*time.Millisecond))
			return !p.server(0).RestsUntil.IsZero()
		}},
		"when its session is lost": {2 * time.Second, func(p *pooled) bool { return p.server(0).Outage != nil }},
		"when it was dialled again": {2 * time.Second, func(p *pooled) bool {
			o := p.server(0).Outage
			return o != nil && o.Why != nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPooled(t, c.silence)
			p.awaitAnswers("all answer", 0, 1, 2)
			p.servers[0].signal(syscall.SIGSTOP)
			p.await("it is seen to answer nothing", func() bool { return c.until(p) })
			p.awaitAnswers("the others answer", 1, 2)
			p.servers[0].signal(syscall.SIGCONT)
			p.awaitAnswers("it has its share again", 0)
		})
	}
}

func TestPool_AllServersStoppedThatGoOn(t *testing.T) {
	t.Parallel()
	for name, silence := range map[string]time.Duration{"for less than Silence": time.Hour, "for longer": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPooled(t, silence)
			p.awaitAnswers("all answer", 0, 1, 2)
			for _, s := range p.servers {
				s.signal(syscall.SIGSTOP)
			}
			before := p.failed.Load()
			p.await("calls fail", func() bool { return p.failed.Load() >= before+5*callers })
			for _, s := range p.servers {
				s.signal(syscall.SIGCONT)
			}
			p.awaitAnswers("all answer again", 0, 1, 2)
		})
	}
}

func TestPool_ServerThatIsStoppedAtFirst(t *testing.T) {
	t.Parallel()
	p := newPooled(t, 2*time.Second, 0)
	p.awaitAnswers("the others answer", 1, 2)
	require.Zero(t, p.answers()[0])
	p.servers[0].signal(syscall.SIGCONT)
	p.awaitAnswers("all answer", 0, 1, 2)
}
