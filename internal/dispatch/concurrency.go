package dispatch

import (
	"maps"
	"slices"
	"sync"

	"github.com/asterisque-go/asterisque/internal/quota"
)

// ConcurrencyLimit bounds the calls of one function that run at once, over all sessions. Owners
// with waiting calls take turns, and so do the sessions of each.
//
// Its lock may be taken with that of a dispatcher held, not the other way round.
type ConcurrencyLimit struct {
	// it bounds the durable calls of an owner to a share of the workers; an urgent call passes it,
	// as it waits for no worker either; fixed
	ofOwner bool

	mu    sync.Mutex
	free  int                      // guarded by mu, as all below
	queue fairQueue[*sessionShare] // each once
	idle  map[Job]struct{}         // calls with a place here that wait for a worker or for memory
	// urgent calls that wait for a place
	urgent int
}

// NewConcurrencyLimit returns a limit of the calls of one function that run at once.
func NewConcurrencyLimit(calls int) *ConcurrencyLimit { return &ConcurrencyLimit{free: calls} }

// NewOwnerLimit returns a limit of the durable calls of one owner that run at once.
func NewOwnerLimit(calls int) *ConcurrencyLimit { return &ConcurrencyLimit{ofOwner: true, free: calls} }

// State returns the number of free places, and that of sessions with calls that wait for one.
func (g *ConcurrencyLimit) State() (free, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.free, g.queue.len()
}

// sessionShare is the calls of one session that wait for one concurrency limit.
type sessionShare struct {
	owner  *quota.Owner // these are fixed
	waiter *Dispatcher

	queued bool // guarded by the lock of the concurrency limit: in the queue
}

// enter takes a free place, and reports whether there was one.
func (g *ConcurrencyLimit) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.enterLocked()
}

func (g *ConcurrencyLimit) enterLocked() bool {
	if g.free == 0 {
		return false
	}
	g.free--
	return true
}

// enterOrQueue is enter; if there is no free place, it puts c into the queue. The caller then adds
// a call to c, which is urgent or not.
func (g *ConcurrencyLimit) enterOrQueue(c *sessionShare, urgent bool) bool {
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

// enterAgain puts c, one call of which has got a place, at the end of the queue. It returns true if
// c has got another place, which has become free while c was not in the queue.
func (g *ConcurrencyLimit) enterAgain(c *sessionShare) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queueLocked(c)
	return g.enterLocked()
}

func (g *ConcurrencyLimit) queueLocked(c *sessionShare) {
	if !c.queued {
		c.queued = true
		g.queue.push(c.owner, c)
	}
}

// dequeue removes c from the queue: all its calls were canceled.
func (g *ConcurrencyLimit) dequeue(c *sessionShare) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.queued {
		c.queued = false
		g.queue.remove(c.owner, func(o **sessionShare) bool { return *o != c })
	}
}

// waitsInside records that a call with a place waits for a worker or for memory. It returns false
// if the call must not wait, as an urgent call waits behind it.
func (g *ConcurrencyLimit) waitsInside(j Job) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.urgent > 0 {
		return false
	}
	g.idleLocked(j)
	return true
}

// passed records that j, which has waited here, has got a place, and waits for a worker now. urgent
// reports whether j is urgent. passed reports whether an urgent call waits behind it.
func (g *ConcurrencyLimit) passed(j Job, urgent bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if urgent {
		g.urgent--
	}
	g.idleLocked(j)
	return g.urgent > 0
}

func (g *ConcurrencyLimit) idleLocked(j Job) {
	if g.idle == nil {
		g.idle = make(map[Job]struct{})
	}
	g.idle[j] = struct{}{}
}

// waitsNoMore records that j no longer waits for a worker or for memory.
func (g *ConcurrencyLimit) waitsNoMore(j Job) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.idle, j)
}

// countUrgent adds n, which may be negative, to the urgent calls that wait for a place.
func (g *ConcurrencyLimit) countUrgent(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.urgent += n
}

// lend lends workers to the calls that have a place and wait for one, while an urgent call waits
// for a place.
func (g *ConcurrencyLimit) lend() {
	g.mu.Lock()
	var idle []Job
	if g.urgent > 0 {
		idle = slices.Collect(maps.Keys(g.idle))
	}
	g.mu.Unlock()
	for _, j := range idle {
		j.Dispatcher().lend(j)
	}
}

// vacate releases a place, to a waiting call if there is one.
func (g *ConcurrencyLimit) vacate() {
	for c := g.next(); c != nil; c = g.next() {
		if ok, another := c.waiter.admit(g, c); ok && !another {
			return
		}
	}
}

// next returns the session share that gets the place of a call that has left. If no call waits, the
// place becomes free, and next returns nil.
func (g *ConcurrencyLimit) next() *sessionShare {
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
