package asterisque

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/internal/ranking"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// admission bounds the cost of connections without a session, and the number of sessions, in all
// and from one address. Each connection takes a place with its first packet, and keeps it until it
// carries a session, or is closed. When no place is left, the address that has most of them loses
// its oldest. Silent peers of one address therefore do not displace other addresses, and rarely
// each other, because an honest peer needs its place for a moment only.
type admission struct {
	admissionLimits // fixed

	mu    sync.Mutex
	hosts map[hostName]*peerHost // guarded by mu, as all below; those with a place or a session
	// hosts with places; the host with most is the first, and among equals that with the oldest
	// place
	crowds  ranking.Ranking[peerHost]
	open    int // places
	carried int // sessions
}

// admissionLimits are the bounds of an admission.
type admissionLimits struct {
	halfOpen   int           // places; 0: any number
	sessions   int           // of the node; 0: any number
	perAddress int           // sessions and places of an address; 0: any number
	everywhere bool          // perAddress also holds for addresses of this machine
	resumes    bool          // sessions can be resumed: only carry knows which are new
	time       time.Duration // for a connection to carry a session
}

// hostName is the origin of connections; see HostOf.
type hostName struct {
	host  netip.Prefix
	where string
}

// peerHost is the state of an address.
type peerHost struct {
	name     hostName
	open     list.List // its places, as *admissionSlot; the oldest is the first
	sessions int
	crowd    ranking.Place // among the crowds
}

// mostWithin is how many wires of one connection may have places at once while half of all places
// are taken.
const mostWithin = 16

// mostTried is how many wires a peer may open on one connection, in the time for a handshake,
// without beginning a session.
const mostTried = 1024

// admissionSlot implements transport.Place.
type admissionSlot struct {
	door   *admission
	host   *peerHost
	parent *admissionSlot // place of the connection, if this is one of a Wire there
	other  *admissionSlot // place that the Wire has at another node, which admitted it first

	// These are guarded by the lock of door.
	expires  time.Time     // time at which the place is lost
	waits    *list.Element // among the places of its host; nil if it has none now
	lost     func()        // nil once it was called, or will not be
	timer    *wait.Timer   // calls lost at expires; nil if the holder does
	children int           // places within it
	sessions int           // sessions carried by the connection
	tried    int           // wires since the last session began, or since the time below
	again    time.Time     // time at which tried begins at 0 again
	carries  bool          // it carries a session by itself
	gone     bool
}

// Enter implements transport.Place.
func (p *admissionSlot) Enter(lost func()) (transport.Place, error) {
	child, refused := p.door.enter(nil, p, lost)
	if refused != nil {
		return nil, refused
	}
	child.watch()
	return child, nil
}

// newAdmission returns an admission without places and sessions.
func newAdmission(b admissionLimits) *admission {
	return &admission{
		admissionLimits: b,
		hosts:           make(map[hostName]*peerHost),
		crowds:          ranking.New((*peerHost).crowds, func(h *peerHost) *ranking.Place { return &h.crowd }),
	}
}

// admit returns the place of a Wire from an address. takeOver follows it. A Wire that another node
// has admitted needs a place here as well, and a session over it counts at both nodes.
func (a *admission) admit(w wire.Wire, from net.Addr) (*admissionSlot, *Abort) {
	other := placeAt(w)
	if other != nil && other.door == a {
		return other, nil
	}
	p, refused := a.enter(from, nil, nil)
	if p != nil {
		p.other = other
	}
	return p, refused
}

// placeAt returns the place that w has at a node, or nil.
func placeAt(w wire.Wire) *admissionSlot {
	if admitted, ok := w.(transport.Admitted); ok {
		p, _ := admitted.Place().(*admissionSlot)
		return p
	}
	return nil
}

// enter returns a place for a connection from an address, or for a Wire within a connection.
func (a *admission) enter(from net.Addr, within *admissionSlot, lost func()) (*admissionSlot, *Abort) {
	p := &admissionSlot{door: a, parent: within, lost: lost, expires: time.Now().Add(a.time)}
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

// triesLocked counts one more Wire of the connection, and returns their number.
func (p *admissionSlot) triesLocked() int {
	if now := time.Now(); now.After(p.again) {
		p.tried, p.again = 0, now.Add(p.door.time)
	}
	p.tried++
	return p.tried
}

func (a *admission) hostLocked(name hostName) *peerHost {
	h := a.hosts[name]
	if h == nil {
		h = &peerHost{name: name}
		a.hosts[name] = h
	}
	return h
}

// forgetLocked removes h if it has neither places nor sessions. h may have been removed before, and
// its name may belong to another host.
func (a *admission) forgetLocked(h *peerHost) {
	if h.open.Len() == 0 && h.sessions == 0 && a.hosts[h.name] == h {
		delete(a.hosts, h.name)
	}
}

// refusesLocked returns the reason for which p is rejected, or nil.
func (a *admission) refusesLocked(p *admissionSlot) *Abort {
	from := p.host.name.host
	switch {
	case p.parent != nil && p.parent.lost == nil: // lost was called, or the connection has left
		return codec.ErrUnavailable.Withf("the connection is closed")
	case a.sessions > 0 && a.carried >= a.sessions && !a.resumes:
		return a.fullHere()
	case a.bounds(from) && p.fullLocked(a.perAddress):
		return a.fullFrom(from)
	case p.parent != nil && 2*a.open > a.halfOpen && a.halfOpen > 0 && p.parent.children-p.parent.sessions >= mostWithin:
		return codec.ErrOverloaded.Withf("%d wires of this connection wait for their handshake already", mostWithin)
	}
	return nil
}

func (a *admission) fullHere() *Abort {
	return codec.ErrOverloaded.Withf("there are %d sessions here, and no more are allowed: see Admission.Sessions", a.sessions)
}

func (a *admission) fullFrom(from netip.Prefix) *Abort {
	return codec.ErrOverloaded.Withf("there are %d sessions from %s already, and no more are allowed: see Admission.PerAddress", a.perAddress, quota.ShowHost(from))
}

// bounds reports whether the sessions from an address are bounded.
func (a *admission) bounds(from netip.Prefix) bool {
	// ::/64 contains ::1
	here := from.Addr().IsLoopback() || from.Addr() == netip.IPv6Unspecified()
	return a.perAddress > 0 && from.IsValid() && (a.everywhere || !here)
}

// fullLocked reports whether the sessions and places of the address have reached most. The place of
// a connection with wires does not count beside theirs, nor does the connection of p. If sessions
// can be resumed, only places count: p may resume a session while the old Wire of that still seems
// alive.
func (p *admissionSlot) fullLocked(most int) bool {
	n := p.host.open.Len()
	if !p.door.resumes {
		n += p.host.sessions
	}
	for e := p.host.open.Front(); e != nil && n >= most; e = e.Next() {
		if c := e.Value.(*admissionSlot); c == p.parent || c.children > 0 {
			n--
		}
	}
	return n >= most
}

// openLocked adds p to the places without a session. If there are too many, one of them is lost.
func (a *admission) openLocked(p *admissionSlot) {
	p.waits = p.host.open.PushBack(p)
	a.open++
	a.rankLocked(p.host)
	if a.halfOpen > 0 && a.open > a.halfOpen {
		a.loseLocked(a.crowds.First().open.Front().Value.(*admissionSlot))
	}
}

// loseLocked removes p from the places without a session, and notifies its holder.
func (a *admission) loseLocked(p *admissionSlot) {
	a.closeLocked(p)
	if lost := p.lost; lost != nil {
		p.lost = nil
		go lost() // closing a connection may take a moment; ends by itself
	}
}

// closeLocked removes p from the places without a session.
func (a *admission) closeLocked(p *admissionSlot) {
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
func (a *admission) rankLocked(h *peerHost) {
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
	return h.open.Front().Value.(*admissionSlot).expires.Before(o.open.Front().Value.(*admissionSlot).expires)
}

// watch starts the timer after which p is lost.
func (p *admissionSlot) watch() {
	p.door.mu.Lock()
	defer p.door.mu.Unlock()
	p.watchLocked()
}

func (p *admissionSlot) watchLocked() {
	if p.lost != nil && p.waits != nil {
		p.timer = wait.AfterFunc(time.Until(p.expires), p.expire)
	}
}

// expire is called when the timer of p fires.
func (p *admissionSlot) expire() {
	p.door.mu.Lock()
	defer p.door.mu.Unlock()
	if p.waits != nil && !time.Now().Before(p.expires) {
		p.door.loseLocked(p)
	}
}

// takeOver replaces the function that is called when another connection needs the place. The new
// holder enforces the deadline.
func (p *admissionSlot) takeOver(lost func()) *Abort {
	if p.other != nil {
		if refused := p.other.takeOver(lost); refused != nil {
			return refused
		}
	}
	p.door.mu.Lock()
	defer p.door.mu.Unlock()
	if p.waits == nil {
		return errPlaceLost
	}
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.lost = lost
	return nil
}

var errPlaceLost = codec.ErrOverloaded.Withf("the connection carries no session, and its time is over, or another connection needs its place: see Timeouts.Handshake and Admission.HalfOpen")

// carry records that the holder of the place carries a session from now on, or returns the reason
// for a rejection.
func (p *admissionSlot) carry() *Abort {
	if p.other != nil {
		if refused := p.other.carry(); refused != nil {
			return refused
		}
	}
	a := p.door
	a.mu.Lock()
	defer a.mu.Unlock()
	switch from := p.host.name.host; {
	case p.waits == nil:
		return errPlaceLost
	case a.sessions > 0 && a.carried >= a.sessions:
		return a.fullHere()
	case a.bounds(from) && p.host.sessions >= a.perAddress:
		return a.fullFrom(from)
	}
	a.closeLocked(p)
	p.lost, p.carries = nil, true
	p.host.sessions++
	a.carried++
	if c := p.parent; c != nil {
		c.tried = 0
		if c.sessions++; c.sessions == 1 {
			a.closeLocked(c)
		}
	}
	return nil
}

// Leave implements transport.Place.
func (p *admissionSlot) Leave() {
	if p.other != nil {
		p.other.Leave()
	}
	a := p.door
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.gone {
		return
	}
	p.gone, p.lost = true, nil
	a.closeLocked(p)
	if p.carries {
		p.host.sessions--
		a.carried--
	}
	if c := p.parent; c != nil {
		c.children--
		if p.carries {
			c.sessions--
			c.idleLocked()
		}
	}
	a.forgetLocked(p.host)
}

// idleLocked gives the connection a place of its own again if it carries no more sessions.
func (p *admissionSlot) idleLocked() {
	if p.sessions > 0 || p.gone || p.lost == nil {
		return
	}
	p.expires = time.Now().Add(p.door.time)
	p.door.openLocked(p)
	p.watchLocked()
}
