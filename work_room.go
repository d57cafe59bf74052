package asterisque

import (
	"github.com/asterisque-go/asterisque/limits"
)

// Grants of a dispatcher to the peer, and memory of calls that do not run: the budget for Opens,
// answers that wait to leave, and Blocks without a receiver.

// arrive counts an Open, or returns an error if it is to be rejected.
func (d *dispatcher) arrive(cost uint64, nested bool) *Abort {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.arriveLocked(cost, nested)
}

func (d *dispatcher) arriveLocked(cost uint64, nested bool) *Abort {
	d.served++
	return d.room.arrive(d.plan, &d.scheduler.nested, cost, nested)
}

// fits reports whether Opens of this total cost may still arrive.
func (d *dispatcher) fits(cost uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.room.fits(d.plan, cost)
}

// giveBack releases the budget of an Open.
func (d *dispatcher) giveBack(cost uint64, nested bool) {
	d.mu.Lock()
	grant := d.giveBackLocked(cost, nested)
	d.mu.Unlock()
	d.grant(grant)
}

func (d *dispatcher) giveBackLocked(cost uint64, nested bool) (grant uint64) {
	d.room.giveBack(&d.scheduler.nested, cost, nested)
	if nested {
		return 0
	}
	return d.dueLocked()
}

// giveBackCountedLocked is giveBackLocked for j, if its Open has been counted.
func (d *dispatcher) giveBackCountedLocked(j job) (grant uint64) {
	if t := j.task(); t.counted {
		return d.giveBackLocked(j.cost(), t.nested)
	}
	return 0
}

// dueLocked returns the total to be granted to the peer. Credit is held back only while a later
// event will release it: the start of a call that waits for a worker, or an answer. A call that
// waits for its key or its function may do so for any time.
func (d *dispatcher) dueLocked() (grant uint64) {
	return d.room.opens.Grant(d.ready.len()+d.large.len() == 0 && d.parked.away == 0)
}

func (d *dispatcher) grant(total uint64) {
	if total > 0 {
		d.output.grant(total)
	}
}

// resize changes the budget for Opens.
func (d *dispatcher) resize(p *limits.Plan) {
	d.mu.Lock()
	d.room.opens.SetPlan(p)
	grant := d.dueLocked()
	wake := d.pokeLocked()
	d.mu.Unlock()
	d.grant(grant)
	d.scheduler.workers.start(wake)
}

// answeredBy is the goroutine that has answered a call.
type answeredBy uint8

const (
	byWorker answeredBy = iota
	byLent              // a worker beyond the limit, lent to a nested call
	byReader            // the reader, which rejects a call, or runs it inline
	beyond              // the reader, for a call that exceeds the grant
)

// park counts an answer that waits to leave, and its bytes.
func (d *dispatcher) park(held int, by answeredBy) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parkLocked(1, held, by)
}

// unpark is called when an answer that was parked has left.
func (d *dispatcher) unpark(held int, by answeredBy) {
	d.mu.Lock()
	d.parkLocked(-1, -held, by)
	grant := d.dueLocked() // the cost of the call may have been released before
	wake := d.pokeLocked()
	d.mu.Unlock()
	d.grant(grant)
	d.scheduler.workers.start(wake)
}

// parkLocked counts n answers and their bytes.
func (d *dispatcher) parkLocked(n, held int, by answeredBy) {
	d.holding.add(held)
	switch by {
	case byWorker:
		d.parked.running += int32(n)
		d.running += int32(n)
	case byLent:
		d.parked.lent += int32(n)
		d.room.answers += held
	default:
		d.parked.away += int32(n)
	}
}

// hold adds bytes of calls that do not run; bytes may be negative.
func (d *dispatcher) hold(bytes int) {
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

// shelter reserves bytes of the budget for running calls, or releases them; see piping.Ledger.
func (d *dispatcher) shelter(bytes int) bool {
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

// held returns the bytes of running calls.
func (d *dispatcher) held() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.holding.bytes
}

// workLoad is the part of a session's statistics from its dispatcher.
type workLoad struct {
	waiting, running, mostWaiting, mostRunning int

	served       uint64
	parked       int
	held         int // bytes of running calls, without the calls themselves
	unparked     int // running calls without a waiting answer
	streams      int
	opens        limits.Opens
	nested, most int // cost of nested calls, and its bound
}

func (d *dispatcher) load() workLoad {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &d.parked
	return workLoad{
		waiting: int(d.waiting), running: int(d.running), mostWaiting: int(d.mostWaiting), mostRunning: int(d.mostRunning), served: d.served,
		parked: int(p.running + p.away + p.lent), held: d.holding.bytes, unparked: int(d.running - p.running), streams: int(d.streams),
		opens: d.room.opens, nested: d.room.inner, most: d.plan.Nested,
	}
}
