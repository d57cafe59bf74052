package asterisque

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/limits"
)

// owner is whom the shares of a node belong to: who a peer has proved to be, or the address that it
// comes from. All its sessions have one share together.
type owner struct {
	name    string        // what tells it from others; fixed, as all
	subject string        // as WithAccept has found out
	proved  bool          // that has, or TLS has proved an identity
	tally   *limits.Tally // of what its sessions hold

	nested atomic.Int64 // calls within calls that run for its sessions

	refs int // sessions and durable calls that know it; guarded by the lock of its owners

	// These are guarded by the lock of once.
	durable durableShare
}

// owners are those of a node, by name.
type owners struct {
	total *limits.Tally // of what all hold; fixed

	mu  sync.Mutex
	all map[string]*owner // guarded by mu
}

// join returns the owner of a session with p, until leave.
func (o *owners) join(p *Peer) *owner {
	name, proved := ownerName(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.all[name]
	if w == nil {
		if o.all == nil {
			o.all = make(map[string]*owner)
		}
		w = &owner{name: name, proved: proved, subject: p.Subject, tally: limits.NewTally(o.total, 0)}
		o.all[name] = w
	}
	w.refs++
	return w
}

// keep lets w be known for longer: each keep is followed by a leave.
func (o *owners) keep(w *owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w.refs++
}

// leave says that one of those who know w knows it no more.
func (o *owners) leave(w *owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w.refs--; w.refs <= 0 && o.all[w.name] == w {
		delete(o.all, w.name)
	}
}

// ownerName returns what tells the owner of a session from others, and whether that is proved.
func ownerName(p *Peer) (name string, proved bool) {
	if p.Subject != "" {
		return "subject " + p.Subject, true
	}
	if id := p.identity(); id != "" {
		return "key " + id, true
	}
	return "address " + addressName(p.RemoteAddr), false
}

// addressName returns what tells an address from others: for one of a network the host, without its
// port, and of IPv6 the /64 of which a household or a machine has all. Where no network is crossed all
// are one.
func addressName(a net.Addr) string {
	addr, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return a.Network() + " " + a.String()
	}
	host := addr.Addr().Unmap()
	if host.Is6() {
		block, _ := host.WithZone("").Prefix(64) // 64 is never too many
		return block.String()
	}
	return host.String()
}
