package admission

import (
	"container/list"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// mostWithin is how many wires of one connection may have places at once while half of all places
// are taken.
const mostWithin = 16

// mostTried is how many wires a peer may open on one connection, in the time for a handshake,
// without beginning a session.
const mostTried = 1024

// Slot is the place of a connection, or of one of the Wires within a connection. It implements
// transport.Place.
type Slot struct {
	control *Control
	host    *peerHost
	parent  *Slot // place of the connection, if this is one of a Wire there
	other   *Slot // place that the Wire has at another node, which admitted it first

	// These are guarded by the lock of control.
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
func (p *Slot) Enter(lost func()) (transport.Place, error) {
	child, refused := p.control.add(nil, p, lost)
	if refused != nil {
		return nil, refused
	}
	child.Watch()
	return child, nil
}

// SlotOf returns the place that w has at a node, or nil.
func SlotOf(w wire.Wire) *Slot {
	if admitted, ok := w.(transport.Admitted); ok {
		p, _ := admitted.Place().(*Slot)
		return p
	}
	return nil
}

// Deadline returns the time at which the place is lost.
func (p *Slot) Deadline() time.Time {
	p.control.mu.Lock()
	defer p.control.mu.Unlock()
	return p.expires
}

// triesLocked counts one more Wire of the connection, and returns their number.
func (p *Slot) triesLocked() int {
	if now := time.Now(); now.After(p.again) {
		p.tried, p.again = 0, now.Add(p.control.limits.Time)
	}
	p.tried++
	return p.tried
}

// Watch starts the timer after which p is lost.
func (p *Slot) Watch() {
	p.control.mu.Lock()
	defer p.control.mu.Unlock()
	p.watchLocked()
}

func (p *Slot) watchLocked() {
	if p.lost != nil && p.waits != nil {
		p.timer = wait.AfterFunc(time.Until(p.expires), p.expire)
	}
}

// expire is called when the timer of p fires.
func (p *Slot) expire() {
	p.control.mu.Lock()
	defer p.control.mu.Unlock()
	if p.waits != nil && !time.Now().Before(p.expires) {
		p.control.loseLocked(p)
	}
}

// TakeOver replaces the function that is called when another connection needs the place. The new
// holder enforces the deadline.
func (p *Slot) TakeOver(lost func()) *codec.Abort {
	if p.other != nil {
		if refused := p.other.TakeOver(lost); refused != nil {
			return refused
		}
	}
	p.control.mu.Lock()
	defer p.control.mu.Unlock()
	if p.waits == nil {
		return ErrLost
	}
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.lost = lost
	return nil
}

// Carry records that the holder of the place carries a session from now on, or returns the reason
// for a rejection.
func (p *Slot) Carry() *codec.Abort {
	if p.other != nil {
		if refused := p.other.Carry(); refused != nil {
			return refused
		}
	}
	a := p.control
	a.mu.Lock()
	defer a.mu.Unlock()
	switch from := p.host.name.host; {
	case p.waits == nil:
		return ErrLost
	case a.limits.Sessions > 0 && a.carried >= a.limits.Sessions:
		return a.fullHere()
	case a.bounds(from) && p.host.sessions >= a.limits.PerAddress:
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
func (p *Slot) Leave() {
	if p.other != nil {
		p.other.Leave()
	}
	a := p.control
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
func (p *Slot) idleLocked() {
	if p.sessions > 0 || p.gone || p.lost == nil {
		return
	}
	p.expires = time.Now().Add(p.control.limits.Time)
	p.control.openLocked(p)
	p.watchLocked()
}

// ErrLost is the error of a connection that has lost its place.
var ErrLost = codec.ErrOverloaded.Withf("the connection carries no session, and its time is over, or another connection needs its place: see Timeouts.Handshake and Admission.HalfOpen")
