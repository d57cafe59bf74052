package dispatch

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/quota"
)

// Grants of a dispatcher to the peer: the budget for Opens.

// Arrive counts an Open, or returns an error if it is to be rejected.
func (d *Dispatcher) Arrive(cost uint64, nested bool) *codec.Abort {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.room.arrive(d.plan, &d.scheduler.nested, cost, nested)
}

// Fits reports whether Opens of this total cost may still arrive.
func (d *Dispatcher) Fits(cost uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.room.fits(d.plan, cost)
}

// Return releases the budget of an Open.
func (d *Dispatcher) Return(cost uint64, nested bool) {
	d.mu.Lock()
	grant := d.giveBackLocked(cost, nested)
	d.mu.Unlock()
	d.grant(grant)
}

func (d *Dispatcher) giveBackLocked(cost uint64, nested bool) (grant uint64) {
	d.room.giveBack(&d.scheduler.nested, cost, nested)
	if nested {
		return 0
	}
	return d.dueLocked()
}

// dueLocked returns the total to be granted to the peer. Credit is held back only while a later
// event will release it: the start of a call that waits for a worker, or an answer. A call that
// waits for its key or its function may wait for any time, and holds no credit back.
func (d *Dispatcher) dueLocked() (grant uint64) {
	return d.room.opens.Grant(d.jobs.isEmpty() && d.parked.away == 0)
}

func (d *Dispatcher) grant(total uint64) {
	if total > 0 {
		d.output.Grant(total)
	}
}

// Load is the part of a session's statistics from its dispatcher.
type Load struct {
	Waiting, Running, MostWaiting, MostRunning int

	Served       uint64
	Parked       int
	Held         int // bytes of running calls, without the calls themselves
	Unparked     int // running calls without a waiting answer
	Opens        flow.Opens
	Nested, Most int // cost of nested calls, and its bound
}

// Load returns the present numbers.
func (d *Dispatcher) Load() Load {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &d.parked
	return Load{
		Waiting: int(d.waiting), Running: int(d.running), MostWaiting: int(d.mostWaiting), MostRunning: int(d.mostRunning), Served: d.room.arrived,
		Parked: int(p.running + p.away + p.lent), Held: d.holding.bytes, Unparked: int(d.running - p.running),
		Opens: d.room.opens, Nested: d.room.inner, Most: d.plan.Nested,
	}
}

// openRoom is the budget for Opens on the receiving side: see [flow.Opens], and for the sender
// [flow.Credit]. Nested calls have a budget of their own. It is guarded by the lock of its
// dispatcher.
type openRoom struct {
	owner *quota.Owner // fixed

	opens   flow.Opens
	arrived uint64 // all Opens so far
	nested  int32  // nested calls that are here
	urged   int32  // calls with a lent worker, as a nested call waits for their end
	inner   int    // cost of the nested calls
	answers int    // bytes of answers to them that wait to leave
}

// ErrOpens is the error of a peer that opens more calls than it was granted.
var ErrOpens = codec.ErrWindow.Withf("more calls than there is room for")

// arrive counts an Open, or returns an error if it is to be rejected. all has the places of the
// node for nested calls.
func (r *openRoom) arrive(p *flow.Plan, all *quota.Slots, cost uint64, nested bool) *codec.Abort {
	r.arrived++
	switch {
	case !nested:
		if !r.opens.Arrive(cost) {
			return ErrOpens
		}
		return nil
	case r.fullOf(p), p.Nested > 0 && r.inner+int(cost) > p.Nested:
		return codec.ErrOverloaded.Withf("%d nested calls run here, which cost %d bytes, and %d calls that nested calls wait for, and there is no room for more", r.nested, r.inner, r.urged)
	case r.answers > p.Room:
		return codec.ErrOverloaded.Withf("answers to nested calls hold %d bytes here, and the peer does not read them", r.answers)
	case !all.Acquire(r.owner):
		return codec.ErrOverloaded.Withf("the nested calls of all sessions hold the places for them here")
	}
	r.nested++
	r.inner += int(cost)
	return nil
}

// urge counts a call that a nested call waits for: it borrows a worker, and takes a place, as
// nested calls do. It returns an error if no place is free.
func (r *openRoom) urge(p *flow.Plan, all *quota.Slots) *codec.Abort {
	if r.fullOf(p) || !all.Acquire(r.owner) {
		return codec.ErrOverloaded.Withf("nested calls, and calls that nested calls wait for, hold all places for them here")
	}
	r.urged++
	return nil
}

// urgeNoMore releases the place of such a call.
func (r *openRoom) urgeNoMore(all *quota.Slots) {
	all.Release(r.owner)
	r.urged--
}

// fullOf reports whether calls with lent workers have all places of the session.
func (r *openRoom) fullOf(p *flow.Plan) bool {
	return p.NestedCalls > 0 && int(r.nested+r.urged) >= p.NestedCalls
}

// fits reports whether Opens of this total cost may still arrive, nested or not. The peer releases
// the budget of a nested call when it cancels the call, while its function may still run here: so
// the whole budget for nested calls may be on its way.
func (r *openRoom) fits(p *flow.Plan, cost uint64) bool {
	nested := uint64(p.Nested)
	return nested == 0 || cost <= nested || r.opens.Fits(cost-nested)
}

// giveBack releases the budget of an Open.
func (r *openRoom) giveBack(all *quota.Slots, cost uint64, nested bool) {
	if !nested {
		r.opens.Return(cost)
		return
	}
	all.Release(r.owner)
	r.nested--
	r.inner -= int(cost)
}
