package asterisque

import (
	"sync"

	"github.com/asterisque-go/asterisque/internal/fifo"
)

// gate bounds how many calls of one function run at once, over all sessions. Sessions whose calls wait have their turn one after the other.
type gate struct {
	mu    sync.Mutex
	free  int                     // guarded by mu, as all below
	queue fifo.Queue[*dispatcher] // each has calls that wait for this gate, or had
}

// enter takes a free place. If there is none, it notes that d has a call that waits, and reports false. It is called with the lock of d held.
func (g *gate) enter(d *dispatcher) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free > 0 {
		g.free--
		return true
	}
	if d.gated[g] == nil { // otherwise it is in the queue already
		g.queue.Push(d)
	}
	return false
}

// leave gives a place back, to a call that waits if there is one.
func (g *gate) leave() {
	for {
		g.mu.Lock()
		if g.queue.Len() == 0 {
			g.free++
			g.mu.Unlock()
			return
		}
		d := g.queue.Pop()
		g.mu.Unlock()
		ok, more := d.admit(g)
		if more {
			g.mu.Lock()
			g.queue.Push(d)
			g.mu.Unlock()
		}
		if ok {
			return
		}
	}
}
