package asterisque

import (
	"github.com/asterisque-go/asterisque/limits"
)

// What a dispatcher promises the peer, and what is held for calls that do not run: the room for
// Opens, answers that wait to leave, and Blocks that nobody waits for any more.

// arrive counts an Open, and returns why it has to be refused if it has.
func (d *dispatcher) arrive(cost uint64, nested bool) *Abort {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.arriveLocked(cost, nested)
}

func (d *dispatcher) arriveLocked(cost uint64, nested bool) *Abort {
	d.served++
	return d.room.arrive(d.plan, &d.staff.nested, cost, nested)
}

// fits reports whether Opens were promised that cost so much together and have not arrived.
func (d *dispatcher) fits(cost uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.room.fits(d.plan, cost)
}

// giveBack returns the room of an Open that nobody needs any more.
func (d *dispatcher) giveBack(cost uint64, nested bool) {
	d.mu.Lock()
	grant := d.giveBackLocked(cost, nested)
	d.mu.Unlock()
	d.grant(grant)
}

func (d *dispatcher) giveBackLocked(cost uint64, nested bool) (grant uint64) {
	d.room.giveBack(&d.staff.nested, cost, nested)
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

// dueLocked returns what the peer is to be granted. Credit is held back only while something is
// here that brings another chance: a call that waits for a worker, or an answer. One that waits for
// its key or its function may do so for as long as others of them like.
func (d *dispatcher) dueLocked() (grant uint64) {
	return d.room.opens.Grant(d.ready.len()+d.large.len() == 0 && d.parked.away == 0)
}

func (d *dispatcher) grant(total uint64) {
	if total > 0 {
		d.outlet.grant(total)
	}
}

// resize changes the room for Opens.
func (d *dispatcher) resize(p *limits.Plan) {
	d.mu.Lock()
	d.room.opens.SetPlan(p)
	grant := d.dueLocked()
	wake := d.pokeLocked()
	d.mu.Unlock()
	d.grant(grant)
	d.staff.workers.start(wake)
}

// answeredBy says who has answered a call.
type answeredBy uint8

const (
	byWorker answeredBy = iota
	byLent              // a worker beyond the limit, which was lent to a call within another one
	byReader            // that it has not run, or inline
	beyond              // that it was more than had been promised
)

// park notes that an answer, which holds so many bytes, waits to leave.
func (d *dispatcher) park(held int, by answeredBy) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parkLocked(1, held, by)
}

// unpark is called when an answer that was parked has left.
func (d *dispatcher) unpark(held int, by answeredBy) {
	d.mu.Lock()
	d.parkLocked(-1, -held, by)
	grant := d.dueLocked() // what the call has cost may have been given back before
	wake := d.pokeLocked()
	d.mu.Unlock()
	d.grant(grant)
	d.staff.workers.start(wake)
}

// parkLocked counts n answers that hold so many bytes.
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

// hold counts bytes that are held for calls that do not run; bytes below 0 are held no more.
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

// shelter sets bytes of the room for running calls aside, or gives them back; see piping.Ledger.
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

// held returns how many bytes running calls hold.
func (d *dispatcher) held() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.holding.bytes
}

// workLoad is what the statistics of a session want to know of its dispatcher.
type workLoad struct {
	waiting, running, mostWaiting, mostRunning int

	served       uint64
	parked       int
	held         int // bytes of running calls, besides what the calls are
	unparked     int // running calls whose answers do not wait
	streams      int
	opens        limits.Opens
	nested, most int // bytes that calls within calls cost, and may
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
