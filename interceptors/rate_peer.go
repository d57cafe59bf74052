package interceptors

import (
	"container/list"
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/asterisque-go/asterisque"
)

// RatePerPeer bounds how many calls of each peer are served, or how many are made to each peer, in
// a second, on the side or sides that it stands on; otherwise it is as [RatePerFunction]. Around a
// function it bounds how often each peer may call that.
//
// All sessions of one peer count together. A peer is who has proved to be the same: by the Subject
// of [asterisque.Access].Accept, or else by the key of a verified TLS certificate. Those that prove
// nothing are one for each IP address, of IPv6 for each /64, and one where there is none; how they
// call themselves does not count. Around a Connection the peer is not known, and all are one: put
// it around the node.
//
// It remembers up to 4096 peers with a proof and as many without, each as long as it has not made
// up for its last calls. Beyond that those that come new share one rate.
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
		if c.Served() {
			whose = "this side by one peer"
		}
		if err := take(rates.of(name, now), now, whose); err != nil {
			return c.Refuse(err)
		}
		return next(ctx, c)
	}
}

// mostPeers bounds how many peers of a kind are remembered.
const mostPeers = 4096

// peerRates has the rates of peers.
type peerRates struct {
	limit rate.Limit // these are fixed
	burst int
	idle  time.Duration // after which a rate is as good as new
	rest  *rate.Limiter // of those for whom there is no place; locks itself

	mu    sync.Mutex
	all   map[string]*list.Element // guarded by mu, as order
	order list.List                // of *peerRate, the one that was used last first
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

// forgetLocked forgets those that are as good as new.
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
