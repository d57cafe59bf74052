package asterisque

import (
	"sync/atomic"

	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/limits"
)

// The view of a served call for the dispatcher: see job.

// task implements job.
func (c *served) task() *task { return &c.work }

// gate implements job: it returns the gate of its function, or else that of its owner, if the call
// is durable. A call nested within the same function waits for no gate, and a nested call waits for
// neither owner nor worker.
func (c *served) gate() *gate {
	g := c.handler.gate
	switch {
	case g != nil && c.withinSame(nil):
		return nil
	case g != nil || c.work.nested || c.firstOf() == nil:
		return g
	}
	return c.firstOf().share.gate
}

// onlyWaits implements job.
func (c *served) onlyWaits() bool { return c.handler.onlyWaits }

// turn implements job.
func (c *served) turn() (*keys, *turn) {
	if c.rare == nil || c.rare.turn == nil {
		return nil, nil
	}
	return &c.handler.key.keys, c.rare.turn
}

// withinSame reports whether c is nested within a call of the same function; if key is not nil, of
// the same function and key.
func (c *served) withinSame(key *uint64) bool {
	var by *served
	for o := c.within; o != nil && o.by != nil; o = by.within {
		by = o.by.(*served)
		if by.handler != c.handler {
			continue
		}
		if _, t := by.turn(); key == nil || t != nil && t.key == *key {
			return true
		}
	}
	return false
}

// weight implements job.
func (c *served) weight() int {
	return c.heldParams() + c.heldMetadata() + c.work.becomes.bytes()
}

// cost implements job.
func (c *served) cost() uint64 {
	t := &c.x.terms
	cost := uint64(c.work.size) + t.Overhead
	if c.work.windowed {
		cost += t.Early
	}
	if c.rare != nil {
		cost += uint64(c.rare.strings) - uint64(c.rare.returned)
	}
	return cost
}

// queue implements waiter.
func (c *served) queue() { c.x.dispatcher().queue(c) }

// lend implements waiter.
func (c *served) lend() { c.x.dispatcher().lend(c) }

// shift implements job.
func (c *served) shift() shift {
	if c.work.state == taskLent {
		return lentShift{c}
	}
	return c.x.dispatcher()
}

// lentShift is the work of a worker that is lent to one call.
type lentShift struct{ c *served }

// lent implements shift.
func (lentShift) lent() bool { return true }

// ownedBy implements shift.
func (l lentShift) ownedBy() *owner { return l.c.x.dispatcher().ownedBy() }

// work implements shift.
func (l lentShift) work(w *workspace, _ *atomic.Bool) (again bool) {
	l.c.x.dispatcher().runLent(w, l.c)
	return false
}

// workerLost implements shift.
func (l lentShift) workerLost(*workspace) (again bool) {
	l.c.x.dispatcher().done(l.c)
	return false
}

// begin implements job: the Open no longer waits, and the Blocks have a window of their own.
func (c *served) begin(h limits.Hold) {
	c.countOut()
	if c.pipe != nil {
		(*piping.End)(c.pipe).BeginHandler(h)
	}
}

// countOut subtracts the waiting Open.
func (c *served) countOut() { c.x.inbound.Remove(1, c.held()) }

// unlist implements job.
func (c *served) unlist() {
	c.countOut()
	c.freeParams()
}

// abandon implements job.
func (c *served) abandon() {
	if m := c.firstOf(); m != nil {
		c.x.durable().handOn(m)
	}
}
