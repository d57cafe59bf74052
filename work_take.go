package asterisque

import (
	"sync/atomic"

	"github.com/asterisque-go/asterisque/limits"
)

// What workers do at a dispatcher: they come when they are woken, take calls, run them, and leave
// when none waits.

// found is a call that a worker has taken.
type found struct {
	job   job         // nil if none waits, and then the worker has left
	hold  limits.Hold // the window of its Blocks
	wake  shift       // of another worker that is to be woken; nil: none
	grant uint64      // what the peer is to be granted
}

// ownedBy implements shift.
func (d *dispatcher) ownedBy() *owner { return d.room.owner }

// lent implements shift.
func (d *dispatcher) lent() bool { return false }

// work implements shift.
func (d *dispatcher) work(w *workspace, crowded *atomic.Bool) (again bool) {
	var last job
	for woken := true; ; woken = false {
		if d.windows == nil {
			if d.staff.workers.limit > 0 && d.outlet.mustWaitOutbound() {
				d.waitElsewhere(woken, last)
				return false
			}
			d.outlet.waitOutbound()
		}
		f := d.take(woken, last)
		if f.job == nil {
			return false
		}
		w.job = f.job
		d.staff.workers.start(f.wake)
		d.grant(f.grant)
		f.job.begin(f.hold)
		f.job.run(w)
		yield := crowded.Load()
		if last = f.job; yield || othersWaitFor(last) {
			d.done(last)
			last = nil
		}
		if yield {
			return d.standBack()
		}
	}
}

// othersWaitFor reports whether others may wait for the end of j.
func othersWaitFor(j job) bool {
	_, t := j.turn()
	return t != nil || j.gate() != nil
}

// runLent runs one call on a worker that was lent to it.
func (d *dispatcher) runLent(w *workspace, j job) {
	var h limits.Hold
	t := j.task()
	if t.blocks && d.windows != nil {
		d.windows.Lend(&h)
	}
	if !t.nested { // its worker is lent, but its Open was not
		d.giveBack(j.cost(), false)
	}
	w.job = j
	j.begin(h)
	j.run(w)
	d.done(j)
}

// workerLost implements shift.
func (d *dispatcher) workerLost(w *workspace) (again bool) {
	d.done(w.job)
	return d.standBack()
}

// standBack is called for a worker that gives way to other sessions. It reports whether the shift
// is to be done again when its turn comes. Otherwise the worker has left: no call waits, or a shift
// that is coming takes care of them. So a session waits in one place only among the others, however
// many calls it has, and however long they are all busy.
func (d *dispatcher) standBack() (again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waking || d.ready.len()+d.large.len() == 0 || d.occupiedLocked() > d.plan.Workers {
		d.active--
		return false
	}
	d.waking = true
	return true
}

// waitElsewhere lets a worker go that the node needs for other sessions, and another one come when
// this session may send again. woken says that nobody else is coming, last is as for take.
func (d *dispatcher) waitElsewhere(woken bool, last job) {
	if last != nil {
		d.done(last)
	}
	if !woken && !d.standBack() {
		return
	}
	go func() { // ends at the latest with the session
		d.outlet.waitOutbound()
		d.staff.workers.start(d)
	}()
}

// take returns the next call. last is the call that the worker has run before, or nil.
func (d *dispatcher) take(woken bool, last job) (f found) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if last != nil {
		d.endLocked(last)
	}
	if woken {
		d.waking = false
	}
	if d.occupiedLocked() <= d.plan.Workers {
		f.job = d.nextLocked(&f.hold)
	}
	if f.job == nil {
		d.active--
		return f
	}
	d.beginLocked(f.job, taskBegun)
	f.grant = d.giveBackLocked(f.job.cost(), false)
	f.wake = d.pokeLocked()
	return f
}

// nextLocked returns the next call that may run, with its window in h.
func (d *dispatcher) nextLocked(h *limits.Hold) job {
	if j := d.large.first(); j != nil && !d.ready.above(j.task().priority) && d.roomLocked(j, h) {
		return d.large.pop()
	}
	for {
		j := d.ready.pop()
		switch {
		case j == nil:
			return nil
		case !d.passLocked(j):
		case !d.behindLocked(j.task()) && d.roomLocked(j, h):
			return j
		case j.task().gated && !j.gate().waitsInside(j): // as if a worker were lent
			if j.task().blocks && d.windows != nil {
				d.windows.Lend(h)
			}
			return j
		default:
			d.largeLocked().push(j)
		}
	}
}

// largeLocked returns the queue for a call that has to wait for room.
func (d *dispatcher) largeLocked() *jobQueue {
	if d.large == nil {
		q := newJobQueue(taskToRoom)
		d.large = &q
	}
	return d.large
}

// behindLocked reports whether a call that is not small has to wait behind another one that waits
// for room: that one may need all of it.
func (d *dispatcher) behindLocked(t *task) bool {
	first := d.large.first()
	return first != nil && first.task().priority >= t.priority && !t.small()
}

// roomLocked reports whether there is room for what j holds while it runs, and takes the window of
// its Blocks.
func (d *dispatcher) roomLocked(j job, h *limits.Hold) bool {
	if !d.holding.fits(j, d.plan.Room) {
		return false
	}
	t := j.task()
	if !t.blocks || !t.windowed || d.windows == nil {
		return true
	}
	for !d.windows.Begin(h) { // limits became smaller than what was promised
		if d.running == 0 {
			d.windows.Lend(h)
			return true
		}
		if d.windows.Late(&limits.Claim{Granted: d.poke}) {
			return false
		}
	}
	return true
}

// done is called when j has run.
func (d *dispatcher) done(j job) {
	d.mu.Lock()
	t := j.task()
	lent, gated := t.state == taskLent, t.gated
	d.endLocked(j)
	var wake shift
	if lent { // otherwise its worker looks for the next call
		wake = d.pokeLocked()
	}
	d.mu.Unlock()
	d.staff.workers.start(wake)
	d.release(j, gated)
}
