package cluster

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
)

// durableShares bound what one caller may have remembered of this node's calls, so that the others
// find room. What the other nodes have let in nobody counts here. It counts by whole periods, that
// before included, so that something counts until it is forgotten, and for a while longer.
type durableShares struct {
	most   durableAmount // of each caller; these are fixed
	period time.Duration // after which a call is forgotten

	mu      sync.Mutex
	began   time.Time                // the present period; guarded by mu, as all below
	present map[string]durableAmount // by caller; of no more calls than the bucket takes
	before  map[string]durableAmount
}

// durableAmount is what the bucket has of some calls.
type durableAmount struct{ calls, bytes int64 }

var errDurableShare = durableRefusal(codec.ErrOverloaded.Withf("the durable calls of this peer fill its share of what is remembered: make it again later"))

func newDurableShares(d Durable) *durableShares {
	part := func(n int64) int64 { return max(int64(d.Share*float64(n)), 1) }
	return &durableShares{most: durableAmount{part(d.Calls), part(d.Bytes)}, period: d.Remember}
}

// check returns why a caller may have no more calls remembered, or nil.
func (s *durableShares) check(caller string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turnLocked(time.Now())
	a, b := s.present[caller], s.before[caller]
	if a.calls+b.calls >= s.most.calls || a.bytes+b.bytes >= s.most.bytes {
		return errDurableShare
	}
	return nil
}

// take counts what a caller has.
func (s *durableShares) take(caller string, calls, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turnLocked(time.Now())
	a := s.present[caller]
	s.present[caller] = durableAmount{a.calls + calls, a.bytes + bytes}
}

// turnLocked begins another period if it is time.
func (s *durableShares) turnLocked(now time.Time) {
	if passed := now.Sub(s.began); s.present == nil || passed >= 2*s.period {
		s.before, s.present, s.began = nil, make(map[string]durableAmount), now
	} else if passed >= s.period {
		s.before, s.present, s.began = s.present, make(map[string]durableAmount), s.began.Add(s.period)
	}
}

// durableCaller tells callers apart as the node does: by what they have proved, and else by where
// they come from: a host, and of IPv6 the /64, of which a household or a machine has all. Of a
// posted call the caller is the identity that has posted it.
func durableCaller(ctx context.Context, c *asterisque.Call) string {
	if by, ok := posterAt(c.Session().Peer(), c.Metadata(ctx)); ok {
		return "posted by " + by.Identity
	}
	if owner := c.Owner(); owner != "" {
		return "as " + owner
	}
	at := c.Session().Peer().RemoteAddr
	if at == nil {
		return ""
	}
	return callerAt(at)
}

// callerAt names who comes from an address.
func callerAt(at net.Addr) string {
	host, _, err := net.SplitHostPort(at.String())
	if err != nil {
		return at.Network()
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return "at " + host
	}
	bits := 64
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		bits = 32
	}
	return "at " + netip.PrefixFrom(ip, bits).Masked().String()
}
