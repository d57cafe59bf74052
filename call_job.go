package asterisque

import (
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/limits"
)

// The view of a served call for the dispatcher: see job.

// task implements job.
func (c *inboundCall) task() *task { return &c.work }

// limit implements job: it returns the concurrency limit of its function, or else that
// of its owner, if the call is durable. A call nested within the same function waits for no
// concurrency limit, and a nested call waits for neither owner nor worker.
func (c *inboundCall) limit() *concurrencyLimit {
	g := c.handler.limit
	switch {
	case g != nil && c.withinSame(nil):
		return nil
	case g != nil || c.work.nested || c.firstOf() == nil:
		return g
	}
	return c.firstOf().share.limit
}

// onlyWaits implements job.
func (c *inboundCall) onlyWaits() bool { return c.handler.onlyWaits }

// turn implements job.
func (c *inboundCall) turn() (*keyedOrder, *keyTurn) {
	if c.extras == nil || c.extras.turn == nil {
		return nil, nil
	}
	return &c.handler.key.keys, c.extras.turn
}

// withinSame reports whether c is nested within a call of the same function; if key is not nil, of
// the same function and key.
func (c *inboundCall) withinSame(key *uint64) bool {
	var by *inboundCall
	for o := c.parent; o != nil && o.by != nil; o = by.parent {
		by = o.by.(*inboundCall)
		if by.handler != c.handler {
			continue
		}
		if _, t := by.turn(); key == nil || t.sameKey(*key) {
			return true
		}
	}
	return false
}

// weight implements job.
func (c *inboundCall) weight() int {
	return c.heldParams() + c.heldMetadata() + c.work.decodedSize.bytes()
}

// cost implements job.
func (c *inboundCall) cost() uint64 {
	t := &c.x.terms
	cost := uint64(c.work.size) + t.Overhead
	if c.work.windowed {
		cost += t.Early
	}
	if c.extras != nil {
		cost += uint64(c.extras.strings) - uint64(c.extras.returned)
	}
	return cost
}

// dispatcher implements job.
func (c *inboundCall) dispatcher() *dispatcher { return c.x.dispatcher() }

// begin implements job: the Open no longer waits, and the Blocks have a window of their own.
func (c *inboundCall) begin(h limits.Hold) {
	c.countOut()
	if c.pipe != nil {
		(*piping.End)(c.pipe).BeginHandler(h)
	}
}

// countOut subtracts the waiting Open.
func (c *inboundCall) countOut() { c.x.inbound.Remove(1, c.held()) }

// unlist implements job.
func (c *inboundCall) unlist() {
	c.countOut()
	c.freeParams()
}

// abandon implements job.
func (c *inboundCall) abandon() {
	if m := c.firstOf(); m != nil {
		c.x.durable().handOn(m)
	}
}
