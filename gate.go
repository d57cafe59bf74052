package asterisque

import (
	"sync"

	"github.com/asterisque-go/asterisque/internal/fifo"
)

// gate bounds how many calls of one function run at once, over all sessions. Sessions whose calls wait have their turn one after the other.
//
// Its lock may be taken with that of a dispatcher held, not the other way round.
type gate struct {
	mu    sync.Mutex
	free  int                 // guarded by mu, as all below
	queue fifo.Queue[*parked] // each once
}

// parked are the calls of one session that wait for one gate.
type parked struct {
	d     *dispatcher // fixed
	calls line        // guarded by the lock of d; empty only while it is being forgotten

	queued bool // guarded by the lock of the gate: it is in the queue
}

// enter takes a free place. If there is none, it returns the calls of d that wait, p or, if that is nil, new ones, to which another one is to be added.
func (g *gate) enter(d *dispatcher, p *parked) *parked {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free > 0 {
		g.free--
		return nil
	}
	if p == nil {
		p = &parked{d: d}
	}
	g.queueLocked(p)
	return p
}

// again puts p, one call of which has got a place, at the end of the queue. It reports true if it has got another place, which has become free while p was not in the queue.
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
		g.queue.Push(p)
	}
}

// forget takes p out of the queue: all its calls gave up.
func (g *gate) forget(p *parked) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.queued {
		p.queued = false
		g.queue.Filter(func(o **parked) bool { return *o != p })
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

// next returns the calls whose turn it is to get the place of one that has left. If none wait the place is free, and it returns nil.
func (g *gate) next() *parked {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.queue.Len() == 0 {
		g.free++
		return nil
	}
	p := g.queue.Pop()
	p.queued = false
	return p
}
