package asterisque

import (
	"maps"
	"slices"
	"sync"
)

// gate bounds how many calls of one function run at once, over all sessions. Owners whose calls
// wait have their turn one after the other, and so have the sessions of each.
//
// Its lock may be taken with that of a dispatcher held, not the other way round.
type gate struct {
	mu    sync.Mutex
	free  int                    // guarded by mu, as all below
	queue turns[*parked]         // each once
	idle  map[*incoming]struct{} // calls that have a place here, and wait for a worker or for room
	// calls that wait for a place, and for which a worker would be lent
	urgent int
}

// parked are the calls of one session that wait for one gate.
type parked struct {
	d     *dispatcher // fixed
	calls line        // guarded by the lock of d; empty only while it is being forgotten

	queued bool // guarded by the lock of the gate: it is in the queue
}

// enter takes a free place. If there is none, it returns the calls of d that wait, p or, if that is
// nil, new ones, to which another one is to be added; urgent says that this one is.
func (g *gate) enter(d *dispatcher, p *parked, urgent bool) *parked {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free > 0 {
		g.free--
		return nil
	}
	if p == nil {
		p = &parked{d: d, calls: line{is: inGate}}
	}
	if urgent {
		g.urgent++
	}
	g.queueLocked(p)
	return p
}

// placed notes that c, which has waited, has got a place, and waits for a worker now. It reports
// whether an urgent call waits behind it.
func (g *gate) placed(c *incoming) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.urgent() {
		g.urgent--
	}
	g.idleLocked(c)
	return g.urgent > 0
}

// keeps notes that c, which has a place, waits for room, unless it reports that an urgent call
// waits behind it, so that it must not.
func (g *gate) keeps(c *incoming) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.urgent > 0 {
		return true
	}
	g.idleLocked(c)
	return false
}

func (g *gate) idleLocked(c *incoming) {
	if g.idle == nil {
		g.idle = make(map[*incoming]struct{})
	}
	g.idle[c] = struct{}{}
}

// urge notes that a call which waits for a place has become urgent.
func (g *gate) urge() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.urgent++
}

// begun notes that c waits for no worker any more.
func (g *gate) begun(c *incoming) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.idle, c)
}

// goneUrgent notes that an urgent call has left without having got a place.
func (g *gate) goneUrgent() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.urgent--
}

// lend lends workers to the calls that have a place and wait for one, while an urgent one waits for
// a place.
func (g *gate) lend() {
	g.mu.Lock()
	var idle []*incoming
	if g.urgent > 0 {
		idle = slices.Collect(maps.Keys(g.idle))
	}
	g.mu.Unlock()
	for _, c := range idle {
		c.s.calls.lend(c)
	}
}

// again puts p, one call of which has got a place, at the end of the queue. It reports true if it
// has got another place, which has become free while p was not in the queue.
func (g *gate) again(p *parked) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queueLocked(p)
	if g.free == 0 {
		return false
	}
	g.free--
	return true
}

func (g *gate) queueLocked(p *parked) {
	if !p.queued {
		p.queued = true
		g.queue.push(p.d.s.owner, p)
	}
}

// forget takes p out of the queue: all its calls gave up.
func (g *gate) forget(p *parked) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.queued {
		p.queued = false
		g.queue.remove(p.d.s.owner, func(o **parked) bool { return *o != p })
	}
}

// leave gives a place back, to a call that waits if there is one.
func (g *gate) leave() {
	for p := g.next(); p != nil; p = g.next() {
		if ok, another := p.d.admit(g, p); ok && !another {
			return
		}
	}
}

// next returns the calls whose turn it is to get the place of one that has left. If none wait the
// place is free, and it returns nil.
func (g *gate) next() *parked {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.queue.len() == 0 {
		g.free++
		return nil
	}
	p := g.queue.pop()
	p.queued = false
	return p
}
