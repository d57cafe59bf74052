package dispatch

import (
	"sync/atomic"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/quota"
)

// How a worker takes calls of a dispatcher: it starts when it is woken, runs them, and leaves when
// none waits.

// takenCall is the result of take.
type takenCall struct {
	job   Job         // nil if none waits, and then the worker has left
	hold  flow.Window // the window of its Blocks
	wake  workSource  // for another worker that is to be woken, if any
	grant uint64      // total to be granted to the peer
}

// Owner returns the owner of the calls.
func (d *Dispatcher) Owner() *quota.Owner { return d.room.owner }

// work runs calls on w until none waits. It returns true when w has to give way to other sessions
// first; crowded reports that they wait.
func (d *Dispatcher) work(w *worker, crowded *atomic.Bool) (again bool) {
	var last Job
	for woken := true; ; woken = false {
		if d.windows == nil {
			if d.scheduler.workers.limit > 0 && d.output.MustWaitOutbound() {
				d.waitElsewhere(woken, last)
				return false
			}
			d.output.WaitOutbound()
		}
		f := d.take(woken, last)
		if f.job == nil {
			return false
		}
		w.job = f.job
		d.scheduler.workers.start(f.wake)
		d.grant(f.grant)
		f.job.Begin(f.hold)
		f.job.Run(&w.workspace)
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

// othersWaitFor reports whether other calls may wait for the end of j.
func othersWaitFor(j Job) bool {
	_, t := j.Turn()
	return t != nil || j.Limit() != nil
}

// standBack is called for a worker that gives way to other sessions. It reports whether the work
// source is to be repeated when its turn comes. Otherwise the worker has left: no call waits, or an
// arriving work source will run them. A session therefore has one place in the queue of sessions,
// for any number of calls.
func (d *Dispatcher) standBack() (again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waking || d.jobs.isEmpty() || d.occupiedLocked() > d.plan.Workers {
		d.active--
		return false
	}
	d.waking = true
	return true
}

// waitElsewhere releases a worker that the node needs for other sessions, and starts another one
// when this session may send again. woken reports that no other worker is waking; last is as for
// take.
func (d *Dispatcher) waitElsewhere(woken bool, last Job) {
	if last != nil {
		d.done(last)
	}
	if !woken && !d.standBack() {
		return
	}
	go func() { // ends at the latest with the session
		d.output.WaitOutbound()
		d.scheduler.workers.start(workSource{d: d})
	}()
}

// take returns the next call. last is the previous call of the worker, or nil.
func (d *Dispatcher) take(woken bool, last Job) (f takenCall) {
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
	f.grant = d.giveBackLocked(f.job.Cost(), false)
	f.wake = d.pokeLocked()
	return f
}

// nextLocked returns the next call that may run, with its window in h.
func (d *Dispatcher) nextLocked(h *flow.Window) Job {
	if j := d.jobs.large.first(); j != nil && !d.jobs.ready.above(j.Task().Priority) && d.roomLocked(j, h) {
		return d.jobs.large.pop()
	}
	for {
		j := d.jobs.ready.pop()
		switch {
		case j == nil:
			return nil
		case !d.passLocked(j):
		case !d.jobs.isBehind(j.Task()) && d.roomLocked(j, h):
			return j
		case j.Task().limited && !j.Limit().waitsInside(j): // as with a lent worker
			if j.Task().Blocks && d.windows != nil {
				d.windows.Lend(h)
			}
			return j
		default:
			d.jobs.awaitMemory(j)
		}
	}
}

// roomLocked reports whether the bytes of j, while it runs, fit, and takes the window of its
// Blocks.
func (d *Dispatcher) roomLocked(j Job, h *flow.Window) bool {
	if !d.holding.fits(j, d.plan.Room) {
		return false
	}
	t := j.Task()
	if !t.Blocks || !t.Windowed || d.windows == nil {
		return true
	}
	d.windows.Begin(h)
	return true
}

// done is called when j has run.
func (d *Dispatcher) done(j Job) {
	d.mu.Lock()
	t := j.Task()
	lent, limited := t.state == lent, t.limited
	d.endLocked(j)
	var wake workSource
	if lent { // otherwise its worker takes the next call
		wake = d.pokeLocked()
	}
	d.mu.Unlock()
	d.scheduler.workers.start(wake)
	release(j, limited)
}
