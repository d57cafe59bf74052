package pool

import (
	"context"
	"slices"
	"sync/atomic"
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
	s, err := a.pool.join(a.url)
	if err != nil {
		return unsent(err, nil)
	}
	return a.pool.invoke(ctx, call, func(tried []*server) (*server, bool) {
		switch {
		case !s.takes():
			return nil, s.conn.Err() != nil
		case slices.Contains(tried, s):
			return nil, true
		}
		return s, true
	})
}

// keyPatience is how long the calls of a key wait for their server when it is away, before they go
// to the next one: long enough for a restart in good order.
const keyPatience = 2 * time.Second

// ByKey returns a Caller for calls that belong together: all clients with the same set of servers
// send those with one key to the same server, and when that leaves the set only its keys go to
// others, evenly (rendezvous hashing). While it takes no calls, for more than two seconds, they go
// to the next one in the order of that key. Config.Subset does not matter: the server is connected
// to when it is needed first. ByKey costs little, and need not be kept.
func (p *Pool) ByKey(key string) asterisque.Caller {
	return &caller{p, func(tried []*server) (*server, bool) { return p.byKey(key, tried) }}
}

func (p *Pool) byKey(key string, tried []*server) (_ *server, ready bool) {
	urls, now := p.members.known(), time.Now()
	for first := true; len(urls) > 0; first = false {
		best := rendezvous(key, urls)
		s, err := p.join(urls[best])
		if err == nil && s.takes() {
			ready = true
			if !slices.Contains(tried, s) {
				return s, true
			}
		} else if err == nil && first && s.awaited(now) {
			return nil, false
		}
		if first {
			urls = slices.Clone(urls)
		}
		urls = slices.Delete(urls, best, best+1)
	}
	return nil, ready
}

// awaited reports whether the server has been away for so short a time that it may be back at once.
func (s *server) awaited(now time.Time) bool {
	o := s.conn.Outage()
	return o != nil && now.Sub(o.Since) < keyPatience
}

// Sticky returns a Caller whose calls all go to one server: the one that took the first of them, as
// long as it takes calls; then another one, which they stay with. It is for what a server remembers
// of a client.
func (p *Pool) Sticky() asterisque.Caller {
	var last atomic.Pointer[server]
	return &caller{p, func(tried []*server) (*server, bool) {
		if s := last.Load(); s != nil && s.conn.Err() == nil && s.takes() && p.has(s) && !slices.Contains(tried, s) {
			return s, true
		}
		s, ready := p.any(tried)
		if s != nil {
			last.Store(s)
		}
		return s, ready
	}}
}

// has reports whether calls are spread over s.
func (p *Pool) has(s *server) bool { return slices.Contains(*p.spread.Load(), s) }
