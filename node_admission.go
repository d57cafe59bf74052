package asterisque

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/ranking"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// admission is the door of a node: it bounds what peers cost that carry no session yet, and how
// many sessions there are, in all and from one address. Each connection takes a place when its
// first packet is taken, and keeps it until it carries a session, or is closed. When places run
// out, the address that has most of them gives its oldest up: so many silent peers of one address
// keep nobody else out, and hardly each other, because an honest one needs a moment only.
type admission struct {
	doorBounds // fixed

	mu    sync.Mutex
	hosts map[hostName]*host // guarded by mu, as all below; those with a place or a session
	// those of hosts with places; the first one has most, and of those with as many the oldest
	crowds  ranking.Ranking[host]
	open    int // places
	carried int // sessions
}

// doorBounds are the bounds of an admission.
type doorBounds struct {
	halfOpen   int           // places; 0: any number
	sessions   int           // of the node; 0: any number
	perAddress int           // sessions and places of an address; 0: any number
	everywhere bool          // that is also for addresses of this machine
	resumes    bool          // sessions may be, so that only carry knows who begins one
	time       time.Duration // for a connection to carry a session
}

// hostName tells where connections come from; see hostOf.
type hostName struct {
	host  netip.Prefix
	where string
}

// host is what an address has.
type host struct {
	name     hostName
	open     list.List // its places, as *entry; the oldest is the first
	sessions int
	crowd    ranking.Place // among the crowds
}

// mostWithin is how many wires of one connection may have places at once while half of all are
// taken.
const mostWithin = 16

// mostTried is how many wires a peer may open on one connection, in the time for a handshake, while
// no session comes of any.
const mostTried = 1024

// entry implements transport.Place.
type entry struct {
	door   *admission
	host   *host
	within *entry // that of the connection, if it is one of a Wire there
	other  *entry // that the Wire has at the door of another node, which let it in first

	// These are guarded by the lock of door.
	expires  time.Time     // when it is lost
	waits    *list.Element // among the places of its host; nil if it has none now
	lost     func()        // nil once it was called, or will not be
	timer    *wait.Timer   // calls lost in time; nil if its holder does
	children int           // places within it
	sessions int           // that the connection carries
	tried    int           // wires since the last session began, or since the time below
	again    time.Time     // when tried begins at 0 again
	carries  bool          // it carries a session by itself
	gone     bool
}

// Enter implements transport.Place.
func (p *entry) Enter(lost func()) (transport.Place, error) {
	child, refused := p.door.enter(nil, p, lost)
	if refused != nil {
		return nil, refused
	}
	child.watch()
	return child, nil
}

// newAdmission returns a door without anybody.
func newAdmission(b doorBounds) *admission {
	return &admission{
		doorBounds: b,
		hosts:      make(map[hostName]*host),
		crowds:     ranking.New((*host).crowds, func(h *host) *ranking.Place { return &h.crowd }),
	}
}

// admit returns the place of a Wire from an address. It is followed by takeOver. What another node
// has let in needs a place here as well, and a session over it counts at both doors.
func (a *admission) admit(w wire.Wire, from net.Addr) (*entry, *Abort) {
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

// placeAt returns the place that w has at the door of a node, or nil.
func placeAt(w wire.Wire) *entry {
	if admitted, ok := w.(transport.Admitted); ok {
		p, _ := admitted.Place().(*entry)
		return p
	}
	return nil
}

// enter returns a place for a connection from an address, or for a Wire within a connection.
func (a *admission) enter(from net.Addr, within *entry, lost func()) (*entry, *Abort) {
	p := &entry{door: a, within: within, lost: lost, expires: time.Now().Add(a.time)}
	var name hostName
	if within == nil {
		name.host, name.where = hostOf(from) // the address may be the application's
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

// triesLocked counts one more Wire of the connection, and returns how many there were.
func (p *entry) triesLocked() int {
	if now := time.Now(); now.After(p.again) {
		p.tried, p.again = 0, now.Add(p.door.time)
	}
	p.tried++
	return p.tried
}

func (a *admission) hostLocked(name hostName) *host {
	h := a.hosts[name]
	if h == nil {
		h = &host{name: name}
		a.hosts[name] = h
	}
	return h
}

// forgetLocked forgets h if it has nothing any more. It may have been forgotten already, and its
// name be that of another one.
func (a *admission) forgetLocked(h *host) {
	if h.open.Len() == 0 && h.sessions == 0 && a.hosts[h.name] == h {
		delete(a.hosts, h.name)
	}
}

// refusesLocked returns why p does not get in, or nil.
func (a *admission) refusesLocked(p *entry) *Abort {
	from := p.host.name.host
	switch {
	case p.within != nil && p.within.lost == nil: // it was told, or has left
		return codec.ErrUnavailable.Withf("the connection is closed")
	case a.sessions > 0 && a.carried >= a.sessions && !a.resumes:
		return a.fullHere()
	case a.bounds(from) && p.fullLocked(a.perAddress):
		return a.fullFrom(from)
	case p.within != nil && 2*a.open > a.halfOpen && a.halfOpen > 0 && p.within.children-p.within.sessions >= mostWithin:
		return codec.ErrOverloaded.Withf("%d wires of this connection wait for their handshake already", mostWithin)
	}
	return nil
}

func (a *admission) fullHere() *Abort {
	return codec.ErrOverloaded.Withf("there are %d sessions here, and no more are allowed: see Admission.Sessions", a.sessions)
}

func (a *admission) fullFrom(from netip.Prefix) *Abort {
	return codec.ErrOverloaded.Withf("there are %d sessions from %s already, and no more are allowed: see Admission.PerAddress", a.perAddress, shown(from))
}

// bounds reports whether the sessions from an address are bounded.
func (a *admission) bounds(from netip.Prefix) bool {
	// ::/64, which has ::1
	here := from.Addr().IsLoopback() || from.Addr() == netip.IPv6Unspecified()
	return a.perAddress > 0 && from.IsValid() && (a.everywhere || !here)
}

// fullLocked reports whether the address has, or is about to have, as many sessions as it may. The
// place of a connection says nothing beside those of its wires, and that of the connection which p
// is on none. Where sessions are resumed, p may be to go on with one that is there: its old Wire
// looks alive still.
func (p *entry) fullLocked(most int) bool {
	n := p.host.open.Len()
	if !p.door.resumes {
		n += p.host.sessions
	}
	for e := p.host.open.Front(); e != nil && n >= most; e = e.Next() {
		if c := e.Value.(*entry); c == p.within || c.children > 0 {
			n--
		}
	}
	return n >= most
}

// openLocked lets p be one of those that carry no session. If there are too many, one is lost.
func (a *admission) openLocked(p *entry) {
	p.waits = p.host.open.PushBack(p)
	a.open++
	a.rankLocked(p.host)
	if a.halfOpen > 0 && a.open > a.halfOpen {
		a.loseLocked(a.crowds.First().open.Front().Value.(*entry))
	}
}

// loseLocked takes p out of those that carry no session, and tells its holder.
func (a *admission) loseLocked(p *entry) {
	a.closeLocked(p)
	if lost := p.lost; lost != nil {
		p.lost = nil
		go lost() // which may take a moment to close a connection, and ends by itself
	}
}

// closeLocked takes p out of those that carry no session.
func (a *admission) closeLocked(p *entry) {
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

// rankLocked is called when the places of h have changed.
func (a *admission) rankLocked(h *host) {
	if h.open.Len() == 0 {
		a.crowds.Remove(h)
	} else {
		a.crowds.Put(h)
	}
}

// crowds reports whether h has more places than o, or as many and an older one.
func (h *host) crowds(o *host) bool {
	if n := h.open.Len(); n != o.open.Len() {
		return n > o.open.Len()
	}
	return h.open.Front().Value.(*entry).expires.Before(o.open.Front().Value.(*entry).expires)
}

// watch lets p be lost when its time is over.
func (p *entry) watch() {
	p.door.mu.Lock()
	defer p.door.mu.Unlock()
	p.watchLocked()
}

func (p *entry) watchLocked() {
	if p.lost != nil && p.waits != nil {
		p.timer = wait.AfterFunc(time.Until(p.expires), p.expire)
	}
}

// expire is called when the time of p is over.
func (p *entry) expire() {
	p.door.mu.Lock()
	defer p.door.mu.Unlock()
	if p.waits != nil && !time.Now().Before(p.expires) {
		p.door.loseLocked(p)
	}
}

// takeOver lets lost be called from now on instead, when another connection needs the place;
// whoever has taken it over looks at the time.
func (p *entry) takeOver(lost func()) *Abort {
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

var errPlaceLost = codec.ErrOverloaded.Withf("the connection carries no session, and its time is over, or others need its place: see Timeouts.Handshake and Admission.HalfOpen")

// carry says that what holds the place carries a session from now on, or why it must not.
func (p *entry) carry() *Abort {
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
	if c := p.within; c != nil {
		c.tried = 0
		if c.sessions++; c.sessions == 1 {
			a.closeLocked(c)
		}
	}
	return nil
}

// Leave implements transport.Place.
func (p *entry) Leave() {
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
	if c := p.within; c != nil {
		c.children--
		if p.carries {
			c.sessions--
			c.idleLocked()
		}
	}
	a.forgetLocked(p.host)
}

// idleLocked lets the connection have a place of its own again if it carries no session any more.
func (p *entry) idleLocked() {
	if p.sessions > 0 || p.gone || p.lost == nil {
		return
	}
	p.expires = time.Now().Add(p.door.time)
	p.door.openLocked(p)
	p.watchLocked()
}
