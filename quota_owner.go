package asterisque

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/limits"
)

// quotaOwner is the identity to which a share of a node belongs: the proved identity of a peer, or
// its address. All sessions of an owner have one share together.
type quotaOwner struct {
	name    quotaOwnerName // these are fixed
	subject string         // granted by Access.Accept

	tally  limits.Tally // memory of its sessions, and of answers remembered for it
	nested atomic.Int64 // nested calls that run for its sessions

	refs int // its sessions and durable calls; guarded by the lock of its owners
}

// quotaOwnerName identifies an owner.
type quotaOwnerName struct {
	proof string       // proved identity; empty: none
	host  netip.Prefix // otherwise the host
	where string       // the same, if the address is not one of a network
}

// proved reports whether the owner has a Subject, or an identity by TLS.
func (w *quotaOwner) proved() bool { return w.name.proof != "" }

// quotaOwners are all owners of a node, by name.
type quotaOwners struct {
	total *limits.Tally // memory of all; fixed

	mu  sync.Mutex
	all map[quotaOwnerName]*quotaOwner // guarded by mu
}

// join returns the owner of a session with p. A release follows.
func (o *quotaOwners) join(p *Peer) *quotaOwner {
	name := nameOwner(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.all[name]
	if w == nil {
		if o.all == nil {
			o.all = make(map[quotaOwnerName]*quotaOwner)
		}
		w = &quotaOwner{name: name, subject: p.Subject}
		w.tally.Within(o.total)
		o.all[name] = w
	}
	w.refs++
	return w
}

// retain adds a reference to w. A release follows.
func (o *quotaOwners) retain(w *quotaOwner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w.refs++
}

// release removes a reference to w.
func (o *quotaOwners) release(w *quotaOwner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w.refs--
	o.forgetLocked(w)
}

// forget is called when the last state of w that outlives its sessions is gone.
func (o *quotaOwners) forget(w *quotaOwner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forgetLocked(w)
}

func (o *quotaOwners) forgetLocked(w *quotaOwner) {
	if w.refs == 0 && w.nested.Load() == 0 && o.all[w.name] == w {
		delete(o.all, w.name)
	}
}

// held returns the bytes that each owner holds.
func (o *quotaOwners) held() (held []int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range o.all {
		held = append(held, w.tally.Held())
	}
	return held
}

// heldBy returns the bytes held by the owner to which a session with p would belong.
func (o *quotaOwners) heldBy(p *Peer) int {
	name := nameOwner(p) // computed without the lock, as in join
	o.mu.Lock()
	defer o.mu.Unlock()
	if w := o.all[name]; w != nil {
		return w.tally.Held()
	}
	return 0
}

func nameOwner(p *Peer) (n quotaOwnerName) {
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

// hostOf returns the origin of an address: for a network address the host, without its port, and of
// IPv6 the /64, all of which belongs to one household or machine. Addresses that are not of a
// network have an origin by their text.
func hostOf(a net.Addr) (host netip.Prefix, where string) {
	if a == nil { // the Wire has no address
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
		host, _ = addr.Prefix(64) // 64 is always valid
		return host, ""
	}
	return host, a.Network() + " " + a.String()
}

// shown formats an address for people.
func shown(from netip.Prefix) string {
	if from.IsSingleIP() {
		return from.Addr().String()
	}
	return from.String()
}
