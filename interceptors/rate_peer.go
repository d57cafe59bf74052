package interceptors

import (
	"container/list"
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/asterisque-go/asterisque"
)

// RatePerPeer limits the calls per second that are served for each peer, or made to each peer, on
// the side or sides that it stands on. Otherwise it is like [RatePerFunction]. As an interceptor of
// one function it limits how often each peer may call that function.
//
// All sessions of one peer count together. A peer is identified by the Subject of
// [asterisque.Access].Accept, or else by the key of a verified TLS certificate. Peers without such
// a proof count together for each IP address, or each /64 of IPv6; those without an IP address
// count as one peer. The id that a peer gave itself does not count. The interceptors of a
// Connection do not know the peer, and all peers count as one there: use RatePerPeer at the node
// instead.
//
// It remembers up to 4096 peers with a proof and 4096 without, each until its burst is available
// again in full. Beyond that number, new peers share one rate.
func RatePerPeer(limit rate.Limit, burst int) asterisque.Interceptor {
	checkRate("RatePerPeer", limit, burst)
	proven, others := newPeerRates(limit, burst), newPeerRates(limit, burst)
	return func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		now, rates := time.Now(), others
		name, proof := nameOf(c.Session())
		if proof {
			rates = proven
		}
		whose := "one peer"
		if c.Inbound() {
			whose = "this side by one peer"
		}
		if err := take(rates.of(name, now), now, whose); err != nil {
			return c.Refuse(err)
		}
		return next(ctx, c)
	}
}

// mostPeers bounds the number of remembered peers of each kind.
const mostPeers = 4096

// peerRates holds the rates of peers.
type peerRates struct {
	limit rate.Limit // fixed, as burst and idle are
	burst int
	idle  time.Duration // after that time a rate equals a new one
	rest  *rate.Limiter // shared by the peers beyond mostPeers; has its own lock

	mu    sync.Mutex
	all   map[string]*list.Element // guarded by mu, as order
	order list.List                // of *peerRate, the most recently used first
}

type peerRate struct {
	name    string
	limiter *rate.Limiter
	used    time.Time
}

func newPeerRates(limit rate.Limit, burst int) *peerRates {
	idle := min(float64(burst)/float64(limit), time.Hour.Seconds()*24*365)
	return &peerRates{
		limit: limit, burst: burst, idle: time.Duration(idle * float64(time.Second)),
		rest: rate.NewLimiter(limit, burst), all: make(map[string]*list.Element),
	}
}

// of returns the rate of a peer that makes a call now.
func (p *peerRates) of(name string, now time.Time) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, known := p.all[name]; known {
		r := e.Value.(*peerRate)
		r.used = now
		p.order.MoveToFront(e)
		return r.limiter
	}
	p.forgetLocked(now)
	if len(p.all) >= mostPeers {
		return p.rest
	}
	r := &peerRate{name: name, limiter: rate.NewLimiter(p.limit, p.burst), used: now}
	p.all[name] = p.order.PushFront(r)
	return r.limiter
}

// forgetLocked removes the rates that equal a new one.
func (p *peerRates) forgetLocked(now time.Time) {
	for e := p.order.Back(); e != nil; e = p.order.Back() {
		r := e.Value.(*peerRate)
		if now.Sub(r.used) < p.idle {
			return
		}
		p.order.Remove(e)
		delete(p.all, r.name)
	}
}
