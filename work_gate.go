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
	// it bounds the durable calls of an owner, for whom they are a share of the workers, so that an
	// urgent one waits here no more than for a worker; fixed
	ofOwner bool

	mu    sync.Mutex
	free  int                 // guarded by mu, as all below
	queue turns[*gateCrowd]   // each once
	idle  map[waiter]struct{} // calls that have a place here, and wait for a worker or for room
	// calls that wait for a place, and for which a worker would be lent
	urgent int
}

// gateCrowd stands for the calls of one session that wait for one gate.
type gateCrowd struct {
	owner *owner // these are fixed
	at    admitter

	queued bool // guarded by the lock of the gate: it is in the queue
}

// admitter has the calls that wait for a gate.
type admitter interface {
	// admit lets the next call of c go on, with the place at g that another one has left. It
	// reports false if none waits. another says that it has got one more place, if more calls wait,
	// because others left at the same time.
	admit(g *gate, c *gateCrowd) (ok, another bool)
}

// enter takes a free place, or reports that there is none.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.enterLocked()
}

func (g *gate) enterLocked() bool {
	if g.free == 0 {
		return false
	}
	g.free--
	return true
}

// enterOrQueue is enter, and if there is no free place, c is in the queue from then on. A call is
// to be added to it, which is urgent or not.
func (g *gate) enterOrQueue(c *gateCrowd, urgent bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.enterLocked() {
		return true
	}
	if urgent {
		g.urgent++
	}
	g.queueLocked(c)
	return false
}

// enterAgain puts c, one call of which has got a place, at the end of the queue. It reports true if
// c has got another place, which has become free while c was not in the queue.
func (g *gate) enterAgain(c *gateCrowd) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queueLocked(c)
	return g.enterLocked()
}

func (g *gate) queueLocked(c *gateCrowd) {
	if !c.queued {
		c.queued = true
		g.queue.push(c.owner, c)
	}
}

// dequeue takes c out of the queue: all its calls gave up.
func (g *gate) dequeue(c *gateCrowd) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.queued {
		c.queued = false
		g.queue.remove(c.owner, func(o **gateCrowd) bool { return *o != c })
	}
}

// waitsInside notes that a call which has a place waits for a worker or for room, unless it reports
// false: an urgent call waits behind it, so that it must not wait.
func (g *gate) waitsInside(w waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.urgent > 0 {
		return false
	}
	g.idleLocked(w)
	return true
}

// passed notes that w, which has waited here, has got a place, and waits for a worker now; urgent
// says that it is urgent. It reports whether an urgent call waits behind it.
func (g *gate) passed(w waiter, urgent bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if urgent {
		g.urgent--
	}
	g.idleLocked(w)
	return g.urgent > 0
}

func (g *gate) idleLocked(w waiter) {
	if g.idle == nil {
		g.idle = make(map[waiter]struct{})
	}
	g.idle[w] = struct{}{}
}

// waitsNoMore notes that w waits for neither worker nor room any more.
func (g *gate) waitsNoMore(w waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.idle, w)
}

// countUrgent notes that n calls more wait for a place, or less, that are urgent.
func (g *gate) countUrgent(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.urgent += n
}

// lend lends workers to the calls that have a place and wait for one, while an urgent one waits for
// a place.
func (g *gate) lend() {
	g.mu.Lock()
	var idle []waiter
	if g.urgent > 0 {
		idle = slices.Collect(maps.Keys(g.idle))
	}
	g.mu.Unlock()
	for _, w := range idle {
		w.lend()
	}
}

// vacate gives a place back, to a call that waits if there is one.
func (g *gate) vacate() {
	for c := g.next(); c != nil; c = g.next() {
		if ok, another := c.at.admit(g, c); ok && !another {
			return
		}
	}
}

// next returns the crowd whose turn it is to get the place of a call that has left. If none waits
// the place is free, and it returns nil.
func (g *gate) next() *gateCrowd {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.queue.len() == 0 {
		g.free++
		return nil
	}
	c := g.queue.pop()
	c.queued = false
	return c
}
