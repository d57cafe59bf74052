package pool

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
)

// caller makes calls on servers of a pool that it chooses itself.
type caller struct {
	pool   *Pool // fixed, as choose
	choose chooser
}

// Invoke implements [asterisque.Caller].
func (c *caller) Invoke(ctx context.Context, call *asterisque.Call) error {
	return c.pool.invoke(ctx, call, c.choose)
}

// At returns a Caller for one server, as the Resolver names it. Calls wait for that server, and go
// to no other one. It may be outside of Config.Subset: the first call connects to it, and the
// connection stays. Calls for a URL that the Resolver does not name fail with ErrUnavailable.
func (p *Pool) At(url string) asterisque.Caller { return &at{p, url} }

type at struct { // fixed
	pool *Pool
	url  string
}

// Invoke implements [asterisque.Caller].
func (a *at) Invoke(ctx context.Context, call *asterisque.Call) error {
	return a.pool.invoke(ctx, call, func(tried []*server) (_ *server, ready bool, err error) {
		s, err := a.pool.join(a.url) // each time: it may leave, and come back
		switch {
		case err != nil || !s.takes():
			return nil, false, err
		case slices.Contains(tried, s):
			return nil, true, nil
		}
		return s, true, nil
	})
}

// keyPatience is how long the calls of a key wait for a server that is away, before they go to the
// next one: long enough for a restart in good order.
const keyPatience = 2 * time.Second

// ByKey returns a Caller for calls that belong together: all clients with the same set of servers
// send those with one key to the same server, and when that leaves the set only its keys go to
// others, evenly (rendezvous hashing). While it is away for more than two seconds, or says that it
// does not serve, they go to the next one in the order of that key, which has two seconds as well;
// and so does a call that it refuses. Config.Subset does not matter: the server is connected to
// when it is needed first. ByKey costs little, and need not be kept.
func (p *Pool) ByKey(key string) asterisque.Caller {
	return &caller{p, func(tried []*server) (*server, bool, error) {
		s, ready := p.byKey(key, tried)
		return s, ready, nil
	}}
}

func (p *Pool) byKey(key string, tried []*server) (_ *server, ready bool) {
	urls, now := p.members.known(), time.Now()
	if best := rendezvous(key, urls); best >= 0 { // mostly this one, without sorting
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

// awaited reports whether the server has been away for so short a time that it may be back at once.
func (s *server) awaited(now time.Time) bool {
	if s.conn.Err() != nil || s.conn.Ready() && s.unwell.Load() { // who goes is unwell, too
		return false
	}
	o := s.conn.Outage() // nil: its session is about to end
	return o == nil || now.Sub(o.Since) < keyPatience
}

// Sticky returns a Caller whose calls all go to one server: the one that took the first of them, as
// long as it takes calls; then another one, which they stay with. It is for what a server remembers
// of a client.
func (p *Pool) Sticky() asterisque.Caller {
	var (
		mu   sync.Mutex
		last *server // guarded by mu
	)
	return &caller{p, func(tried []*server) (*server, bool, error) {
		mu.Lock() // so that calls that begin at once agree
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

// has reports whether calls are spread over s.
func (p *Pool) has(s *server) bool { return slices.Contains(p.spread.Load().servers, s) }
