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
	name    ownerName // these are fixed
	subject string    // as Access.Accept has found out

	tally  limits.Tally // of what its sessions hold, and what is remembered for it
	nested atomic.Int64 // calls within calls that run for its sessions

	refs int // sessions and durable calls that know it; guarded by the lock of its owners
}

// ownerName tells an owner from others.
type ownerName struct {
	proof string       // what it has proved to be; empty: nothing
	host  netip.Prefix // else where it comes from
	where string       // the same, if that is no address of a network
}

// proved reports whether Access.Accept has found a Subject, or TLS an identity.
func (w *owner) proved() bool { return w.name.proof != "" }

// owners are those of a node, by name.
type owners struct {
	total *limits.Tally // of what all hold; fixed

	mu  sync.Mutex
	all map[ownerName]*owner // guarded by mu
}

// join returns the owner of a session with p, until release.
func (o *owners) join(p *Peer) *owner {
	name := nameOwner(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.all[name]
	if w == nil {
		if o.all == nil {
			o.all = make(map[ownerName]*owner)
		}
		w = &owner{name: name, subject: p.Subject}
		w.tally.Within(o.total)
		o.all[name] = w
	}
	w.refs++
	return w
}

// retain lets w be known for longer: each retain is followed by a release.
func (o *owners) retain(w *owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w.refs++
}

// release says that one of those who know w knows it no more.
func (o *owners) release(w *owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w.refs--
	o.forgetLocked(w)
}

// forget is called when w has nothing any more that outlives its sessions.
func (o *owners) forget(w *owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forgetLocked(w)
}

func (o *owners) forgetLocked(w *owner) {
	if w.refs == 0 && w.nested.Load() == 0 && o.all[w.name] == w {
		delete(o.all, w.name)
	}
}

// held returns what each owner holds.
func (o *owners) held() (held []int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range o.all {
		held = append(held, w.tally.Held())
	}
	return held
}

// heldBy returns what the owner holds that a session with p would belong to.
func (o *owners) heldBy(p *Peer) int {
	name := nameOwner(p) // without the lock, as in join
	o.mu.Lock()
	defer o.mu.Unlock()
	if w := o.all[name]; w != nil {
		return w.tally.Held()
	}
	return 0
}

func nameOwner(p *Peer) (n ownerName) {
	switch id := p.identity(); {
	case p.Subject != "":
		n.proof = "subject " + p.Subject
	case id != "":
		n.proof = "key " + id
	default:
		n.host, n.where = hostOf(p.RemoteAddr)
	}
	return n
}

// hostOf returns what tells an address from others: for one of a network the host, without its
// port, and of IPv6 the /64 of which a household or a machine has all. Where no network is crossed
// all are one.
func hostOf(a net.Addr) (host netip.Prefix, where string) {
	if a == nil { // a Wire that does not say
		return host, "nowhere"
	}
	var at netip.AddrPort
	if n, ok := a.(interface{ AddrPort() netip.AddrPort }); ok {
		at = n.AddrPort()
	} else if parsed, err := netip.ParseAddrPort(a.String()); err == nil {
		at = parsed
	}
	addr := at.Addr().Unmap().WithZone("")
	switch {
	case addr.Is4():
		return netip.PrefixFrom(addr, 32), ""
	case addr.Is6():
		host, _ = addr.Prefix(64) // 64 is never too many
		return host, ""
	}
	return host, a.Network() + " " + a.String()
}

// shown returns an address as people write it.
func shown(from netip.Prefix) string {
	if from.IsSingleIP() {
		return from.Addr().String()
	}
	return from.String()
}
