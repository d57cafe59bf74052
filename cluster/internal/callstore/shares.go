package callstore

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
)

// callerShares bounds the records that one caller may have of this node's calls, so that there is
// room for other callers. Calls admitted by other nodes do not count. It counts in whole periods,
// the previous one included, so that a record counts until it expires, and for a while longer.
type callerShares struct {
	most   amount        // of each caller; fixed, as period is
	period time.Duration // lifetime of a record

	mu      sync.Mutex
	began   time.Time         // start of the present period; guarded by mu, as all below
	present map[string]amount // by caller; at most as many calls as the bucket accepts
	before  map[string]amount
}

// amount is the space of some calls in the bucket.
type amount struct{ calls, bytes int64 }

var errDurableShare = refused(codec.ErrOverloaded.Withf("the durable calls of this peer use up its share of the records: make the call again later"))

func newShares(d Plan) *callerShares {
	part := func(n int64) int64 { return max(int64(d.Share*float64(n)), 1) }
	return &callerShares{most: amount{part(d.Calls), part(d.Bytes)}, period: d.Remember}
}

// check returns an error if a caller may have no more records.
func (s *callerShares) check(caller string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turnLocked(time.Now())
	a, b := s.present[caller], s.before[caller]
	if a.calls+b.calls >= s.most.calls || a.bytes+b.bytes >= s.most.bytes {
		return errDurableShare
	}
	return nil
}

// take adds to the amount of a caller.
func (s *callerShares) take(caller string, calls, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turnLocked(time.Now())
	a := s.present[caller]
	s.present[caller] = amount{a.calls + calls, a.bytes + bytes}
}

// turnLocked begins another period if it is time.
func (s *callerShares) turnLocked(now time.Time) {
	if passed := now.Sub(s.began); s.present == nil || passed >= 2*s.period {
		s.before, s.present, s.began = nil, make(map[string]amount), now
	} else if passed >= s.period {
		s.before, s.present, s.began = s.present, make(map[string]amount), s.began.Add(s.period)
	}
}

// callerOf distinguishes callers in the same way as the node: by their proven identity, or
// else by their host. For IPv6 it is the /64 prefix, all of which one household or machine may
// have. The caller of a posted call is the identity of the poster.
func (d *Registry) callerOf(ctx context.Context, c *asterisque.Call) string {
	if d.cfg.PostedBy != nil {
		if identity, ok := d.cfg.PostedBy(c.Session().Peer(), c.Metadata(ctx)); ok {
			return "posted by " + identity
		}
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

// callerAt returns the name of a caller from an address.
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
