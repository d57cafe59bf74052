package dispatch

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
)

// Grants of a dispatcher to the peer, and memory of calls that do not run: the budget for Opens,
// answers that wait to leave, and Blocks without a receiver.

// Arrive counts an Open, or returns an error if it is to be rejected.
func (d *Dispatcher) Arrive(cost uint64, nested bool) *codec.Abort {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.arriveLocked(cost, nested)
}

func (d *Dispatcher) arriveLocked(cost uint64, nested bool) *codec.Abort {
	d.served++
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

// giveBackCountedLocked is giveBackLocked for j, if its Open has been counted.
func (d *Dispatcher) giveBackCountedLocked(j Job) (grant uint64) {
	if t := j.Task(); t.Counted {
		return d.giveBackLocked(j.Cost(), t.Nested)
	}
	return 0
}

// dueLocked returns the total to be granted to the peer. Credit is held back only while a later
// event will release it: the start of a call that waits for a worker, or an answer. A call that
// waits for its key or its function may wait for any time, and holds no credit back.
func (d *Dispatcher) dueLocked() (grant uint64) {
	return d.room.opens.Grant(d.ready.len()+d.large.len() == 0 && d.parked.away == 0)
}

func (d *Dispatcher) grant(total uint64) {
	if total > 0 {
		d.output.Grant(total)
	}
}

// Resize changes the budget for Opens.
func (d *Dispatcher) Resize(p *limits.Plan) {
	d.mu.Lock()
	d.room.opens.SetPlan(p)
	grant := d.dueLocked()
	wake := d.pokeLocked()
	d.mu.Unlock()
	d.grant(grant)
	d.scheduler.workers.start(wake)
}

// AnsweredBy is the goroutine that has answered a call.
type AnsweredBy uint8

const (
	ByWorker    AnsweredBy = iota
	ByLent                 // a worker beyond the limit, lent to a nested call
	ByReader               // the reader, which rejects a call, or runs it inline
	BeyondGrant            // the reader, for a call that exceeds the grant
)

// Park counts an answer that waits to leave, and its bytes.
func (d *Dispatcher) Park(held int, by AnsweredBy) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parkLocked(1, held, by)
}

// Unpark is called when an answer that was parked may leave.
func (d *Dispatcher) Unpark(held int, by AnsweredBy) {
	d.mu.Lock()
	d.parkLocked(-1, -held, by)
	grant := d.dueLocked() // the cost of the call may have been released before
	wake := d.pokeLocked()
	d.mu.Unlock()
	d.grant(grant)
	d.scheduler.workers.start(wake)
}

// parkLocked counts n answers and their bytes.
func (d *Dispatcher) parkLocked(n, held int, by AnsweredBy) {
	d.holding.add(held)
	switch by {
	case ByWorker:
		d.parked.running += int32(n)
		d.running += int32(n)
	case ByLent:
		d.parked.lent += int32(n)
		d.room.answers += held
	default:
		d.parked.away += int32(n)
	}
}

// Hold adds bytes of calls that do not run; bytes may be negative.
func (d *Dispatcher) Hold(bytes int) {
	if bytes == 0 {
		return
	}
	d.mu.Lock()
	d.holding.add(bytes)
	d.mu.Unlock()
	if bytes < 0 {
		d.poke()
	}
}

// Reserve reserves bytes of the budget for running calls, or releases them; see piping.Ledger.
func (d *Dispatcher) Reserve(bytes int) bool {
	d.mu.Lock()
	if bytes > 0 && d.holding.exceeds(bytes, d.plan.Room) {
		d.mu.Unlock()
		return false
	}
	d.holding.add(bytes)
	d.mu.Unlock()
	if bytes < 0 {
		d.poke()
	}
	return true
}

// Held returns the bytes of running calls.
func (d *Dispatcher) Held() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.holding.bytes
}

// Load is the part of a session's statistics from its dispatcher.
type Load struct {
	Waiting, Running, MostWaiting, MostRunning int

	Served       uint64
	Parked       int
	Held         int // bytes of running calls, without the calls themselves
	Unparked     int // running calls without a waiting answer
	Streams      int
	Opens        limits.Opens
	Nested, Most int // cost of nested calls, and its bound
}

// Load returns the present numbers.
func (d *Dispatcher) Load() Load {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &d.parked
	return Load{
		Waiting: int(d.waiting), Running: int(d.running), MostWaiting: int(d.mostWaiting), MostRunning: int(d.mostRunning), Served: d.served,
		Parked: int(p.running + p.away + p.lent), Held: d.holding.bytes, Unparked: int(d.running - p.running), Streams: int(d.streams),
		Opens: d.room.opens, Nested: d.room.inner, Most: d.plan.Nested,
	}
}
