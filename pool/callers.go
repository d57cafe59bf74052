package pool

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
)

// serverCaller makes calls on the servers that choose selects.
type serverCaller struct {
	pool   *Pool // fixed, as choose is
	choose chooser
}

// Invoke implements [asterisque.Caller].
func (c *serverCaller) Invoke(ctx context.Context, call *asterisque.Call) error {
	return c.pool.invoke(ctx, call, c.choose)
}

// At returns a Caller for one server, by the URL that the Resolver yielded. Its calls wait for that
// server and never use another one. The server may be outside of Config.Subset: the first call
// connects to it, and the connection stays. Calls for a URL that is not in the set, or that can
// never be used, fail with ErrUnavailable.
func (p *Pool) At(url string) asterisque.Caller { return &callAt{p, url} }

type callAt struct { // fixed
	pool *Pool
	url  string
}

// Invoke implements [asterisque.Caller].
func (a *callAt) Invoke(ctx context.Context, call *asterisque.Call) error {
	return a.pool.invoke(ctx, call, func(tried []*server) (_ *server, ready bool, err error) {
		s, err := a.pool.join(a.url) // joins each time, because the server may leave and return
		switch {
		case err != nil:
			return nil, false, err
		case s.conn.Err() != nil:
			return nil, false, failed(s.conn.Err(), "the pool connects to this server no more")
		case !s.takes():
			return nil, false, nil
		case slices.Contains(tried, s):
			return nil, true, nil
		}
		return s, true, nil
	})
}

// keyPatience is how long the calls of a key wait for an unreachable server before they use the
// next one. It is long enough for a graceful restart.
const keyPatience = 2 * time.Second

// ByKey returns a Caller for calls that share a key. All clients with the same set of servers send
// the calls of one key to the same server (rendezvous hashing). When that server leaves the set,
// only its keys move, evenly, to the remaining servers. If the server is unreachable for more than
// two seconds, or reports that it does not serve, the calls use the next server in the order of
// that key, which gets two seconds as well. A call that the server rejects also uses the next one.
// Config.Subset does not apply: the pool connects to the server at first use. ByKey is cheap, and
// the Caller need not be kept.
func (p *Pool) ByKey(key string) asterisque.Caller {
	return &serverCaller{p, func(tried []*server) (*server, bool, error) {
		s, ready := p.byKey(key, tried)
		return s, ready, nil
	}}
}

func (p *Pool) byKey(key string, tried []*server) (_ *server, ready bool) {
	urls, now := p.members.known(), time.Now()
	if best := rendezvous(key, urls); best >= 0 { // the usual case, without sorting
		if s, err := p.join(urls[best]); err == nil && s.takes() && !slices.Contains(tried, s) {
			return s, true
		}
	}
	for _, i := range subset(key, urls, len(urls)) {
		s, err := p.join(urls[i])
		switch {
		case err != nil:
		case s.takes() && !slices.Contains(tried, s):
			return s, true
		case s.takes():
			ready = true
		case s.awaited(now):
			return nil, false
		}
	}
	return nil, ready
}

// awaited reports whether the server's outage is so short that it may be back soon.
func (s *server) awaited(now time.Time) bool {
	if s.conn.Err() != nil || s.conn.Ready() && s.unwell.Load() { // also while it shuts down
		return false
	}
	o := s.conn.Outage() // nil: its session is about to end
	return o == nil || now.Sub(o.Since) < keyPatience
}

// Sticky returns a Caller with one server for all its calls: the first call selects it, and later
// calls use it as long as it takes calls. Then the next call selects another server in the same
// way. Sticky is for servers that keep state of a client.
func (p *Pool) Sticky() asterisque.Caller {
	var (
		mu   sync.Mutex
		last *server // guarded by mu
	)
	return &serverCaller{p, func(tried []*server) (*server, bool, error) {
		mu.Lock() // so that concurrent first calls agree
		defer mu.Unlock()
		if s := last; s != nil && s.takes() && p.has(s) && !slices.Contains(tried, s) {
			return s, true, nil
		}
		s, ready := p.any(tried)
		if s != nil {
			last = s
		}
		return s, ready, nil
	}}
}

// has reports whether calls are balanced over s.
func (p *Pool) has(s *server) bool { return slices.Contains(p.spread.Load().servers, s) }
