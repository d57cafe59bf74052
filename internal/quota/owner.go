// Package quota shares the memory of a node between its peers. A quota belongs to an [Owner]: the
// proved identity of a peer, or else its address, so that a peer gains nothing by more sessions.
//
// [Owners] has all owners of a node and their common budget. [Slots] bounds what costs a place
// rather than bytes. Both leave a remainder for the next owner, however much the others hold.
package quota

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/internal/flow"
)

// Owner is the identity to which a quota belongs. All sessions of an owner share it.
type Owner struct {
	Name    Name   // these are fixed
	Subject string // granted by the node; "" without

	Tally flow.Tally   // memory of its sessions, and of answers remembered for it
	slots atomic.Int64 // that its sessions have of a Slots

	refs int // its sessions and durable calls; guarded by the lock of its Owners
}

// Name identifies an [Owner].
type Name struct {
	Proof string       // proved identity; "": none
	host  netip.Prefix // otherwise the host
	where string       // the same, if the address is not one of a network
}

// Proved reports whether the owner has a subject, or an identity by TLS.
func (w *Owner) Proved() bool { return w.Name.Proof != "" }

// Owners are all owners of a node, by name, and the budget for the memory that the node holds for
// all of them together. Each session has limits of its own, but their sum may be too large. From
// half of the budget on, windows stop growing, and shrink to their guaranteed size. Above the
// budget, sessions and calls of each owner that holds more than its fair share are rejected. Above
// nine eighths no session begins. A peer that keeps to its grants is never cut off.
//
// All methods but Init are safe for concurrent use.
type Owners struct {
	total *flow.Tally // memory of all; fixed

	mu  sync.Mutex
	all map[Name]*Owner // guarded by mu

	fairMu sync.Mutex // taken before mu
	next   time.Time  // guarded by fairMu, as fair: time of the next computation of fair
	fair   int        // share of an owner
}

// Init prepares o, with a budget in bytes, 0 being none. It comes before all else.
func (o *Owners) Init(budget int) { o.total = flow.NewTally(budget) }

// Held returns the bytes that all owners hold, and the budget.
func (o *Owners) Held() (held, budget int) { return o.total.Held(), o.total.Most() }

// Len returns the number of owners.
func (o *Owners) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.all)
}

// Join returns the owner of a session by its name, with the subject that the node has granted, or
// "". A call of Release follows.
func (o *Owners) Join(name Name, subject string) *Owner {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.all[name]
	if w == nil {
		if o.all == nil {
			o.all = make(map[Name]*Owner)
		}
		w = &Owner{Name: name, Subject: subject}
		w.Tally.Within(o.total)
		o.all[name] = w
	}
	w.refs++
	return w
}

// Retain adds a reference to w. A call of Release follows.
func (o *Owners) Retain(w *Owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w.refs++
}

// Release removes a reference to w.
func (o *Owners) Release(w *Owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w.refs--
	o.forgetLocked(w)
}

// forget is called when the last state of w that outlives its sessions is gone.
func (o *Owners) forget(w *Owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forgetLocked(w)
}

func (o *Owners) forgetLocked(w *Owner) {
	if w.refs == 0 && w.slots.Load() == 0 && o.all[w.Name] == w {
		delete(o.all, w.Name)
	}
}

// held returns the bytes that each owner holds.
func (o *Owners) held() (held []int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range o.all {
		held = append(held, w.Tally.Held())
	}
	return held
}

// heldBy returns the bytes held by the owner with this name, or 0 without one.
func (o *Owners) heldBy(name Name) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w := o.all[name]; w != nil {
		return w.Tally.Held()
	}
	return 0
}

// NameOf returns the name of the owner of a session: its subject, or else the key by which TLS
// has proved the peer's identity, or else its address.
func NameOf(subject, key string, addr net.Addr) (n Name) {
	switch {
	case subject != "":
		n.Proof = "subject " + subject
	case key != "":
		n.Proof = "key " + key
	default:
		n.host, n.where = HostOf(addr)
	}
	return n
}

// HostOf returns the origin of an address: for a network address the host, without its port, and of
// IPv6 the /64, all of which belongs to one household or machine. Addresses that are not of a
// network have an origin by their text.
func HostOf(a net.Addr) (host netip.Prefix, where string) {
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

// ShowHost formats an address for people.
func ShowHost(from netip.Prefix) string {
	if from.IsSingleIP() {
		return from.Addr().String()
	}
	return from.String()
}
