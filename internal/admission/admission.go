// Package admission bounds connections without a session, and sessions, in all and from one
// address.
//
// Each connection takes a [Slot] of the [Control] of a node. A Slot is lost when its time is over
// or another connection needs it, and belongs to a session after Carry.
package admission

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/internal/ranking"
	"github.com/asterisque-go/asterisque/wire"
)

// Control bounds the cost of connections without a session, and the number of sessions, in all
// and from one address. Each connection takes a place with its first packet, and keeps it until it
// carries a session, or is closed. When no place is left, the address that has most of them loses
// its oldest. Silent peers of one address therefore do not displace other addresses, and rarely
// each other, because an honest peer needs its place for a moment only.
type Control struct {
	limits Limits // fixed

	mu    sync.Mutex
	hosts map[hostName]*peerHost // guarded by mu, as all below; those with a place or a session
	// hosts with places; the host with most is the first, and among equals that with the oldest
	// place
	crowds  ranking.Ranking[peerHost]
	open    int // places
	carried int // sessions
}

// Limits are the bounds of a [Control].
type Limits struct {
	HalfOpen   int           // places; 0: any number
	Sessions   int           // of the node; 0: any number
	PerAddress int           // sessions and places of an address; 0: any number
	Everywhere bool          // PerAddress also holds for addresses of this machine
	Resumable  bool          // sessions can be resumed: only Carry knows which are new
	Time       time.Duration // for a connection to carry a session
}

// hostName is the origin of connections; see HostOf.
type hostName struct {
	host  netip.Prefix
	where string
}

// peerHost is the state of an address.
type peerHost struct {
	name     hostName
	open     list.List // its places, as *Slot; the oldest is the first
	sessions int
	crowd    ranking.Place // among the crowds
}

// New returns a Control without places and sessions.
func New(b Limits) *Control {
	return &Control{
		limits: b,
		hosts:  make(map[hostName]*peerHost),
		crowds: ranking.New((*peerHost).crowds, func(h *peerHost) *ranking.Place { return &h.crowd }),
	}
}

// Counts returns the numbers of places without a session, of sessions, and of addresses with one of
// them.
func (a *Control) Counts() (places, sessions, hosts int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open, a.carried, len(a.hosts)
}

// Enter returns a place for a connection from an address, or the reason for a rejection. lost is
// called, on a goroutine of its own, when the place is lost.
func (a *Control) Enter(from net.Addr, lost func()) (*Slot, *codec.Abort) {
	return a.add(from, nil, lost)
}

// Admit returns the place of a Wire from an address. TakeOver follows it. A Wire that another node
// has admitted needs a place here as well, and a session over it counts at both nodes.
func (a *Control) Admit(w wire.Wire, from net.Addr) (*Slot, *codec.Abort) {
	other := SlotOf(w)
	if other != nil && other.control == a {
		return other, nil
	}
	p, refused := a.Enter(from, nil)
	if p != nil {
		p.other = other
	}
	return p, refused
}

// add adds a place for a connection from an address, or for a Wire within a connection.
func (a *Control) add(from net.Addr, within *Slot, lost func()) (*Slot, *codec.Abort) {
	p := &Slot{control: a, parent: within, lost: lost, expires: time.Now().Add(a.limits.Time)}
	var name hostName
	if within == nil {
		name.host, name.where = quota.HostOf(from) // the address may be the application's
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if within == nil {
		p.host = a.hostLocked(name)
	} else {
		p.host = within.host
	}
	if within != nil && within.triesLocked() > mostTried {
		a.loseLocked(within)
		return nil, codec.ErrOverloaded.Withf("more than %d wires of this connection came to nothing", mostTried)
	}
	if refused := a.refusesLocked(p); refused != nil {
		a.forgetLocked(p.host)
		return nil, refused
	}
	if within != nil {
		within.children++
	}
	a.openLocked(p)
	return p, nil
}

func (a *Control) hostLocked(name hostName) *peerHost {
	h := a.hosts[name]
	if h == nil {
		h = &peerHost{name: name}
		a.hosts[name] = h
	}
	return h
}

// forgetLocked removes h if it has neither places nor sessions. h may have been removed before, and
// its name may belong to another host.
func (a *Control) forgetLocked(h *peerHost) {
	if h.open.Len() == 0 && h.sessions == 0 && a.hosts[h.name] == h {
		delete(a.hosts, h.name)
	}
}

// refusesLocked returns the reason for which p is rejected, or nil.
func (a *Control) refusesLocked(p *Slot) *codec.Abort {
	from := p.host.name.host
	switch {
	case p.parent != nil && p.parent.lost == nil: // lost was called, or the connection has left
		return codec.ErrUnavailable.Withf("the connection is closed")
	case a.limits.Sessions > 0 && a.carried >= a.limits.Sessions && !a.limits.Resumable:
		return a.fullHere()
	case a.bounds(from) && p.fullLocked(a.limits.PerAddress):
		return a.fullFrom(from)
	case p.parent != nil && 2*a.open > a.limits.HalfOpen && a.limits.HalfOpen > 0 && p.parent.children-p.parent.sessions >= mostWithin:
		return codec.ErrOverloaded.Withf("%d wires of this connection wait for their handshake already", mostWithin)
	}
	return nil
}

func (a *Control) fullHere() *codec.Abort {
	return codec.ErrOverloaded.Withf("there are %d sessions here, and no more are allowed: see Admission.Sessions", a.limits.Sessions)
}

func (a *Control) fullFrom(from netip.Prefix) *codec.Abort {
	return codec.ErrOverloaded.Withf("there are %d sessions from %s already, and no more are allowed: see Admission.PerAddress", a.limits.PerAddress, quota.ShowHost(from))
}

// bounds reports whether the sessions from an address are bounded.
func (a *Control) bounds(from netip.Prefix) bool {
	// ::/64 contains ::1
	here := from.Addr().IsLoopback() || from.Addr() == netip.IPv6Unspecified()
	return a.limits.PerAddress > 0 && from.IsValid() && (a.limits.Everywhere || !here)
}

// fullLocked reports whether the sessions and places of the address have reached most. The place of
// a connection with wires does not count beside theirs, nor does the connection of p. If sessions
// can be resumed, only places count: p may resume a session while the old Wire of that still seems
// alive.
func (p *Slot) fullLocked(most int) bool {
	n := p.host.open.Len()
	if !p.control.limits.Resumable {
		n += p.host.sessions
	}
	for e := p.host.open.Front(); e != nil && n >= most; e = e.Next() {
		if c := e.Value.(*Slot); c == p.parent || c.children > 0 {
			n--
		}
	}
	return n >= most
}

// openLocked adds p to the places without a session. If there are too many, one of them is lost.
func (a *Control) openLocked(p *Slot) {
	p.waits = p.host.open.PushBack(p)
	a.open++
	a.rankLocked(p.host)
	if a.limits.HalfOpen > 0 && a.open > a.limits.HalfOpen {
		a.loseLocked(a.crowds.First().open.Front().Value.(*Slot))
	}
}

// loseLocked removes p from the places without a session, and notifies its holder.
func (a *Control) loseLocked(p *Slot) {
	a.closeLocked(p)
	if lost := p.lost; lost != nil {
		p.lost = nil
		go lost() // closing a connection may take a moment; ends by itself
	}
}

// closeLocked removes p from the places without a session.
func (a *Control) closeLocked(p *Slot) {
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.waits == nil {
		return
	}
	p.host.open.Remove(p.waits)
	p.waits = nil
	a.open--
	a.rankLocked(p.host)
}

// rankLocked updates the rank of h after a change of its places.
func (a *Control) rankLocked(h *peerHost) {
	if h.open.Len() == 0 {
		a.crowds.Remove(h)
	} else {
		a.crowds.Put(h)
	}
}

// crowds reports whether h has more places than o, or the same number and an older one.
func (h *peerHost) crowds(o *peerHost) bool {
	if n := h.open.Len(); n != o.open.Len() {
		return n > o.open.Len()
	}
	return h.open.Front().Value.(*Slot).expires.Before(o.open.Front().Value.(*Slot).expires)
}
