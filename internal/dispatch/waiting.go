package dispatch

import (
	"time"

	"github.com/asterisque-go/asterisque/codec"
)

// How calls enter a dispatcher, where they wait, and how they leave before they have begun.

// ErrDeferred is the reason why the reader does not run an inline function: the dispatcher is
// paused, or waiting answers hold the whole budget for running calls. Put hands the call to a
// worker.
var ErrDeferred = codec.ErrOverloaded.Withf("answers wait to be sent")

// BeginInline records that the reader is about to run j. If not, it returns an error to reject j,
// or nil if j has ended meanwhile, with the session.
func (d *Dispatcher) BeginInline(j Job) (ok bool, refused *codec.Abort) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := j.Task()
	if t.state != Arriving {
		return false, nil
	}
	if !t.Counted {
		if refused = d.room.arrive(d.plan, &d.scheduler.nested, j.Cost(), t.Nested); refused != nil {
			t.moveLocked(taskWithdrawn)
			return false, refused
		}
	}
	if d.quiet || d.holding.exceeds(0, d.plan.Room) {
		t.Counted = true
		return false, ErrDeferred
	}
	return t.moveLocked(taskBegunInline), nil
}

// Put takes over j, which has just arrived. If too many calls wait already, it rejects the least
// urgent one, which may be j.
func (d *Dispatcher) Put(j Job) {
	d.mu.Lock()
	refused, ok := d.acceptLocked(j)
	if !ok {
		grant := uint64(0)
		if t := j.Task(); t.Counted {
			grant = d.giveBackLocked(j.Cost(), t.Nested)
		}
		d.mu.Unlock()
		d.grant(grant)
		turnAway(j, refused)
		return
	}
	excess := d.excessLocked(j)
	d.waiting++
	if excess == j {
		d.mu.Unlock()
		d.refuseExcess(j)
		return
	}
	if excess == nil {
		d.mostWaiting = max(d.mostWaiting, d.waiting)
	}
	var wake workSource
	keys, turn := j.Turn()
	if turn == nil {
		wake = d.queueLocked(j)
	}
	d.mu.Unlock()
	d.scheduler.workers.start(wake)
	if excess != nil {
		d.refuseExcess(excess)
	}
	if turn != nil {
		keys.queue(j, turn)
	}
	if g := j.Limit(); g != nil && j.Task().Nested {
		g.lend()
	}
}

// acceptLocked counts j, which has arrived, as waiting. It returns false if j is rejected, or was
// canceled before.
func (d *Dispatcher) acceptLocked(j Job) (refused *codec.Abort, ok bool) {
	t := j.Task()
	if t.state != Arriving {
		return nil, false
	}
	refused = d.holding.refusal(t, d.plan.Room)
	if refused == nil && !t.Counted {
		refused = d.room.arrive(d.plan, &d.scheduler.nested, j.Cost(), t.Nested)
	}
	if refused != nil {
		t.moveLocked(taskWithdrawn)
		return refused, false
	}
	return nil, t.moveLocked(taskAccepted)
}

// turnAway releases j, which has just arrived, and will not run.
func turnAway(j Job, refused *codec.Abort) {
	j.Unlist()
	if refused != nil {
		j.Refuse(refused)
	} else {
		j.Abandon()
	}
}

// excessLocked returns the call to be rejected in favour of j, or j itself if all other calls are
// as urgent, or nil if the bound is not reached.
func (d *Dispatcher) excessLocked(j Job) Job {
	if d.scheduler.most == 0 || int(d.waiting) < d.scheduler.most || j.Task().Nested {
		// a nested call waits for no worker, and its parent call cannot end without it
		return nil
	}
	if other := d.jobs.ready.lessUrgent(j.Task().Priority); other != nil {
		return other
	}
	return j
}

// refuseExcess rejects j, which waits, because too many calls wait.
func (d *Dispatcher) refuseExcess(j Job) {
	if d.Withdraw(j).Waits() {
		j.Refuse(codec.OverloadedFor(max(time.Duration(d.lastWait.Load()), MinRetryAfter), "too many calls wait here"))
	}
}

// queue queues j, which has passed its key, for a worker.
func (d *Dispatcher) queue(j Job) {
	d.mu.Lock()
	wake := d.queueLocked(j)
	t := j.Task()
	atLimit := t.state == forLimit && t.urgentLocked()
	d.mu.Unlock()
	d.scheduler.workers.start(wake)
	if atLimit {
		j.Limit().lend()
	}
}

// queueLocked is queue. It returns the work source to be started, if any.
func (d *Dispatcher) queueLocked(j Job) (wake workSource) {
	switch t := j.Task(); {
	case !t.state.Waits():
		return workSource{}
	case t.urgentLocked():
		return d.lendLocked(j)
	case !d.quiet && d.apart < mostApart && j.OnlyWaits():
		if wake = d.lendLocked(j); wake.d != nil {
			d.apart++
		}
		return wake
	}
	d.jobs.ready.push(j)
	return d.wakeLocked()
}

// lend lends a worker to j, which a nested call waits for, as soon as j waits for nothing else. If
// there are too many such calls already, lend rejects j, which ends that wait.
func (d *Dispatcher) lend(j Job) {
	d.mu.Lock()
	t := j.Task()
	if !t.state.Waits() || t.urgentLocked() {
		d.mu.Unlock()
		return
	}
	if refused := d.room.urge(d.plan, &d.scheduler.nested); refused != nil {
		d.mu.Unlock()
		if d.Withdraw(j).Waits() {
			j.Refuse(refused)
		}
		return
	}
	t.urged = true
	var wake workSource
	atLimit := false
	switch in, g := d.jobs.queueOf(j), j.Limit(); {
	case in == nil: // another goroutine is about to queue it
	case t.state == forLimit && !g.ofOwner:
		g.countUrgent(1)
		atLimit = true
	default:
		wake = d.lendLocked(j)
		atLimit = wake.d == nil
		in.noteGone()
		d.jobs.leaveLimit(g)
	}
	d.mu.Unlock()
	d.scheduler.workers.start(wake)
	if atLimit {
		j.Limit().lend() // calls whose places it needs may wait for a worker as well
	}
}

// lendLocked starts j on a worker beyond the limit, if its function allows it now.
func (d *Dispatcher) lendLocked(j Job) (wake workSource) {
	if !j.Task().state.Waits() || !d.passLocked(j) {
		return workSource{}
	}
	d.beginLocked(j, taskBegunLent)
	return workSource{d, j}
}

// passLocked reports whether j has passed the concurrency limit of its function. Otherwise j waits
// there.
func (d *Dispatcher) passLocked(j Job) bool {
	g, t := j.Limit(), j.Task()
	if g == nil || t.limited {
		return true
	}
	if g.ofOwner && t.urgentLocked() { // it passes without waiting, with a place if there is one
		t.limited = g.enter()
		return true
	}
	jobs := d.jobs.limited[g]
	if jobs == nil {
		if t.limited = g.enter(); t.limited {
			return true
		}
		jobs = &limitedJobs{sessionShare: sessionShare{owner: d.room.owner, waiter: d}, jobs: newJobQueue(taskToLimit)}
	}
	if t.limited = g.enterOrQueue(&jobs.sessionShare, t.urgentLocked()); t.limited {
		return true
	}
	if d.jobs.limited == nil {
		d.jobs.limited = make(map[*ConcurrencyLimit]*limitedJobs)
	}
	d.jobs.limited[g] = jobs
	jobs.jobs.push(j)
	return false
}

// admit continues the next call of c, with the place at g that another one has left. It returns
// false if none waits. another reports that c got one more place, for further waiting calls, as
// more places became free at the same time.
func (d *Dispatcher) admit(g *ConcurrencyLimit, c *sessionShare) (ok, another bool) {
	d.mu.Lock()
	jobs := d.jobs.limited[g]
	if jobs == nil || &jobs.sessionShare != c {
		d.mu.Unlock()
		return false, false // all of them were canceled
	}
	j := jobs.jobs.pop()
	if j == nil {
		d.mu.Unlock()
		return false, false
	}
	t := j.Task()
	t.limited = true
	if jobs.jobs.len() > 0 {
		another = g.enterAgain(c)
	} else {
		delete(d.jobs.limited, g)
	}
	behind := g.passed(j, t.urgentLocked())
	d.mu.Unlock()
	d.queue(j)
	if behind {
		d.lend(j)
	}
	return true, another
}

// Withdraw removes j from the place where it waits, because its caller has canceled, the session
// has ended, or too many calls wait. It releases the budget of j, and returns the previous state.
// If j did not wait, Withdraw only stops a j that is arriving.
func (d *Dispatcher) Withdraw(j Job) (before State) {
	d.mu.Lock()
	t := j.Task()
	before = t.state
	in := d.jobs.queueOf(j)
	if !t.moveLocked(taskWithdrawn) || !before.Waits() {
		d.mu.Unlock()
		return before
	}
	d.waiting--
	if t.urged {
		d.room.urgeNoMore(&d.scheduler.nested)
	}
	if in != nil {
		in.noteGone()
	}
	if before == forLimit {
		if t.urgentLocked() {
			j.Limit().countUrgent(-1)
		}
		d.jobs.leaveLimit(j.Limit())
	}
	limited := t.limited
	grant := d.giveBackLocked(j.Cost(), t.Nested)
	d.mu.Unlock()
	d.grant(grant)
	j.Unlist()
	release(j, limited)
	return before
}

// release releases the place of j, which has ended, at the concurrency limit of its function, and
// its turn.
func release(j Job, limited bool) {
	if limited {
		g := j.Limit()
		g.waitsNoMore(j)
		g.vacate()
	}
	if k, t := j.Turn(); t != nil {
		if next, behind := k.leave(t); next != nil {
			next.Dispatcher().queue(next)
			if behind {
				next.Dispatcher().lend(next)
			}
		}
	}
}
