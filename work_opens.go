package asterisque

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/limits"
)

// The room for Opens, as who receives them sees it: see [limits.Opens], and for the sender
// openCredit.

// cost returns what the Open of c has cost of the room for Opens.
func (c *incoming) cost() uint64 {
	t := &c.s.terms
	cost := uint64(c.size) + t.Overhead
	if c.stream {
		cost += t.Early
	}
	if c.rare != nil {
		cost += uint64(c.rare.strings) - uint64(c.rare.returned)
	}
	return cost
}

// arrive counts an Open, and returns why it has to be refused if it has.
func (d *dispatcher) arrive(cost uint64, nested bool) *Abort {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.arriveLocked(cost, nested)
}

func (d *dispatcher) arriveLocked(cost uint64, nested bool) *Abort {
	d.served++
	switch {
	case !nested:
		if !d.opens.Arrive(cost) {
			return errOpensWindow
		}
		return nil
	case d.plan.NestedCalls > 0 && d.nested >= d.plan.NestedCalls, d.plan.Nested > 0 && d.inner+int(cost) > d.plan.Nested:
		return codec.ErrOverloaded.Withf("%d calls run within calls here, which cost %d bytes, and there is no room for more", d.nested, d.inner)
	case d.answers > d.plan.Room:
		return codec.ErrOverloaded.Withf("answers to calls within calls hold %d bytes here, and the peer does not read them", d.answers)
	case !d.s.shared.nested.enter(d.s.owner):
		return codec.ErrOverloaded.Withf("calls within calls of all sessions hold the places for them here")
	}
	d.nested++
	d.inner += int(cost)
	return nil
}

// giveBack returns the room of an Open that nobody needs any more.
func (d *dispatcher) giveBack(cost uint64, nested bool) {
	d.mu.Lock()
	grant := d.giveBackLocked(cost, nested)
	d.mu.Unlock()
	d.grant(grant)
}

func (d *dispatcher) giveBackLocked(cost uint64, nested bool) (grant uint64) {
	if nested {
		d.s.shared.nested.leave(d.s.owner)
		d.nested--
		d.inner -= int(cost)
		return 0
	}
	d.opens.Return(cost)
	return d.dueLocked()
}

// dueLocked returns what the peer is to be granted. Credit is held back only while something is
// here that brings another chance: a call that waits for a worker, or an answer. One that waits for
// its key or its function may do so for as long as others of them like.
func (d *dispatcher) dueLocked() (grant uint64) {
	return d.opens.Grant(d.ready.len()+d.large.len()+d.away == 0)
}

func (d *dispatcher) grant(total uint64) {
	if total > 0 {
		d.s.carrier.Control(message.Credit{Opens: true, Limit: total}, carrier.Now)
	}
}

// resize changes the room for Opens.
func (d *dispatcher) resize(p *limits.Plan) {
	d.mu.Lock()
	d.opens.SetPlan(p)
	grant := d.dueLocked()
	wake := d.pokeLocked()
	d.mu.Unlock()
	d.grant(grant)
	d.s.shared.workers.start(job{d: d}, wake)
}
