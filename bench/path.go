package main

import (
	"context"
	"net"
	"time"

	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// pathSpec has the properties of the network between both ends.
type pathSpec struct {
	roundTrip time.Duration
	rate      int           // bytes a second, each way; 0 is no limit
	halved    time.Duration // how often the rate is halved or doubled again; 0 is never
}

const (
	mbit = 1_000_000 / 8 // bytes a second

	// The queue of the bottleneck holds this, or the bytes of a round trip if that is more.
	leastQueue = 256 << 10
	// longest is the length of a schedule.
	longest = 2 * time.Minute
)

// lane returns one direction.
func (s *pathSpec) lane() wiretest.Lane {
	l := wiretest.Lane{Rate: s.rate, Delay: s.roundTrip / 2}
	l.Queue = max(leastQueue, int(s.roundTrip.Seconds()*float64(s.rate)))
	if s.halved > 0 {
		for at := s.halved; at < longest; at += s.halved {
			l.Changes = append(l.Changes, wiretest.Change{At: at, Rate: s.rateAt(at), Delay: l.Delay})
		}
	}
	return l
}

// rateAt returns the rate at a time.
func (s *pathSpec) rateAt(at time.Duration) int {
	if s.halved > 0 && int(at/s.halved)%2 == 1 {
		return s.rate / 2
	}
	return s.rate
}

// path is a Link with the proxies through it. A nil path is the loopback interface.
type path struct {
	spec    *pathSpec
	begin   time.Time
	link    *wiretest.Link
	proxies []*wiretest.LinkProxy
}

// newPath returns nil for no spec.
func newPath(s *pathSpec) *path {
	if s == nil {
		return nil
	}
	return &path{spec: s, begin: time.Now(), link: wiretest.NewLink(wiretest.LinkConfig{Out: s.lane(), In: s.lane()})}
}

// tcp returns the address to dial for a TCP address behind the path.
func (p *path) tcp(addr string) (string, error) {
	if p == nil {
		return addr, nil
	}
	return p.through(p.link.Proxy(addr))
}

// udp returns the address to send packets to for a UDP address behind the path.
func (p *path) udp(addr string) (string, error) {
	if p == nil {
		return addr, nil
	}
	return p.through(p.link.ProxyUDP(addr))
}

// dial connects to an address from tcp. On a path the send buffer of the socket has the size that
// TCP would choose there: twice the capacity of the path and its queue. TCP cannot know that
// itself, because it sees the loopback interface.
func (p *path) dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err == nil && p != nil && p.spec.rate > 0 {
		holds := p.spec.roundTrip.Seconds()*float64(p.spec.rate) + float64(p.spec.lane().Queue)
		err = c.(*net.TCPConn).SetWriteBuffer(int(holds)) // which Linux doubles
	}
	return c, err
}

func (p *path) through(proxy *wiretest.LinkProxy, err error) (string, error) {
	if err != nil {
		return "", err
	}
	p.proxies = append(p.proxies, proxy)
	return proxy.Addr(), nil
}

func (p *path) close() {
	if p != nil {
		for _, proxy := range p.proxies {
			proxy.Close()
		}
	}
}

// passed returns how many bytes have left the bottleneck towards the accepting side.
func (p *path) passed() int64 {
	out, _ := p.link.Stats()
	return out.Passed
}

// allows returns how many bytes may pass between two times.
func (p *path) allows(from, to time.Time) float64 {
	s := p.spec
	if s.halved == 0 {
		return to.Sub(from).Seconds() * float64(s.rate)
	}
	sum := 0.0
	for at := from; at.Before(to); {
		since := at.Sub(p.begin)
		next := p.begin.Add((since/s.halved + 1) * s.halved)
		if next.After(to) {
			next = to
		}
		sum += next.Sub(at).Seconds() * float64(s.rateAt(since))
		at = next
	}
	return sum
}

// changing reports whether the rate has changed within the second before t.
func (p *path) changing(t time.Time) bool {
	since := t.Sub(p.begin)
	return p.spec.halved > 0 && since > p.spec.halved && since%p.spec.halved < time.Second
}
