package asterisque

import (
	"time"

	"github.com/asterisque-go/asterisque/codec"
)

// How calls enter a dispatcher, where they wait, and how they leave before they have begun.

// errCrowded is the reason why the reader does not run an inline function: waiting answers hold the
// whole budget for running calls, and a worker takes the call when they have left; or the session
// is quiet.
var errCrowded = codec.ErrOverloaded.Withf("answers wait to be sent")

// beginInline records that the reader is about to run j. If not, it returns an error to reject j,
// or nil if j has ended meanwhile, with the session.
func (d *dispatcher) beginInline(j job) (ok bool, refused *Abort) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := j.task()
	if t.state != taskArriving {
		return false, nil
	}
	if !t.counted {
		if refused = d.arriveLocked(j.cost(), t.nested); refused != nil {
			t.moveLocked(taskWithdrawn)
			return false, refused
		}
	}
	if d.quiet || d.holding.exceeds(0, d.plan.Room) {
		t.counted = true
		return false, errCrowded
	}
	return t.moveLocked(taskBegunInline), nil
}

// put takes over j, which has just arrived. If too many calls wait already, it rejects the least
// urgent one, which may be j.
func (d *dispatcher) put(j job) {
	d.mu.Lock()
	refused, ok := d.acceptLocked(j)
	if !ok {
		grant := d.giveBackCountedLocked(j)
		d.mu.Unlock()
		d.turnAway(j, grant, refused)
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
	keys, turn := j.turn()
	if turn == nil {
		wake = d.queueLocked(j)
	}
	d.mu.Unlock()
	d.scheduler.workers.start(wake)
	if excess != nil {
		d.refuseExcess(excess)
	}
	if turn != nil {
		d.enterTurn(j, keys, turn)
	}
	if g := j.limit(); g != nil && j.task().nested {
		g.lend()
	}
}

// acceptLocked counts j, which has arrived, as waiting. It returns false if j is rejected, or was
// canceled before.
func (d *dispatcher) acceptLocked(j job) (refused *Abort, ok bool) {
	t := j.task()
	if t.state != taskArriving {
		return nil, false
	}
	refused = d.holding.refusal(t, d.plan.Room)
	if refused == nil && !t.counted {
		refused = d.arriveLocked(j.cost(), t.nested)
	}
	if refused != nil {
		t.moveLocked(taskWithdrawn)
		return refused, false
	}
	return nil, t.moveLocked(taskAccepted)
}

// turnAway releases j, which has just arrived, and will not run.
func (d *dispatcher) turnAway(j job, grant uint64, refused *Abort) {
	d.grant(grant)
	j.unlist()
	if refused != nil {
		j.refuse(refused)
	} else {
		j.abandon()
	}
}

// enterTurn queues j for its turn, and then for a worker.
func (d *dispatcher) enterTurn(j job, k *keyedOrder, t *keyTurn) {
	first, holder := k.enter(t)
	switch {
	case first:
		d.queue(j)
	case holder != nil:
		holder.dispatcher().lend(holder)
	}
}

// excessLocked returns the call to be rejected in favour of j, or j itself if all other calls are
// as urgent, or nil if the bound is not reached.
func (d *dispatcher) excessLocked(j job) job {
	if d.scheduler.most == 0 || int(d.waiting) < d.scheduler.most || j.task().nested {
		// a nested call waits for no worker, and its parent call cannot end without it
		return nil
	}
	if other := d.ready.lessUrgent(j.task().priority); other != nil {
		return other
	}
	return j
}

// refuseExcess rejects j, which waits, because too many calls wait.
func (d *dispatcher) refuseExcess(j job) {
	if d.withdraw(j).waits() {
		j.refuse(codec.OverloadedFor(max(time.Duration(d.lastWait.Load()), minRetryAfter), "too many calls wait here"))
	}
}

// queue queues j, which has passed its key, for a worker.
func (d *dispatcher) queue(j job) {
	d.mu.Lock()
	wake := d.queueLocked(j)
	t := j.task()
	atLimit := t.state == taskForLimit && t.urgentLocked()
	d.mu.Unlock()
	d.scheduler.workers.start(wake)
	if atLimit {
		j.limit().lend()
	}
}

// queueLocked is queue. It returns the work source to be started, if any.
func (d *dispatcher) queueLocked(j job) (wake workSource) {
	switch t := j.task(); {
	case !t.state.waits():
		return workSource{}
	case t.urgentLocked():
		return d.lendLocked(j)
	case !d.quiet && d.apart < mostApart && j.onlyWaits():
		if wake = d.lendLocked(j); wake.d != nil {
			d.apart++
		}
		return wake
	}
	d.ready.push(j)
	return d.wakeLocked()
}

// lend lends a worker to j, which a nested call waits for, as soon as j waits for nothing else. If
// there are too many such calls already, lend rejects j, which ends that wait.
func (d *dispatcher) lend(j job) {
	d.mu.Lock()
	t := j.task()
	if !t.state.waits() || t.urgentLocked() {
		d.mu.Unlock()
		return
	}
	if refused := d.room.urge(d.plan, &d.scheduler.nested); refused != nil {
		d.mu.Unlock()
		if d.withdraw(j).waits() {
			j.refuse(refused)
		}
		return
	}
	t.urged = true
	var wake workSource
	atLimit := false
	switch in, g := d.queueOfLocked(j), j.limit(); {
	case in == nil: // another goroutine is about to queue it
	case t.state == taskForLimit && !g.ofOwner:
		g.countUrgent(1)
		atLimit = true
	default:
		wake = d.lendLocked(j)
		atLimit = wake.d == nil
		in.noteGone()
		d.leaveLimitLocked(g)
	}
	d.mu.Unlock()
	d.scheduler.workers.start(wake)
	if atLimit {
		j.limit().lend() // calls whose places it needs may wait for a worker as well
	}
}

// queueOfLocked returns the queue in which j waits, or nil if it is in none.
func (d *dispatcher) queueOfLocked(j job) *jobQueue {
	switch j.task().state {
	case taskForWorker:
		return &d.ready
	case taskForRoom:
		return d.large
	case taskForLimit:
		return &d.limited[j.limit()].jobs
	}
	return nil
}

// lendLocked starts j on a worker beyond the limit, if its function allows it now.
func (d *dispatcher) lendLocked(j job) (wake workSource) {
	if !j.task().state.waits() || !d.passLocked(j) {
		return workSource{}
	}
	d.beginLocked(j, taskBegunLent)
	return workSource{d, j}
}

// passLocked reports whether j has passed the concurrency limit of its function. Otherwise j waits
// there.
func (d *dispatcher) passLocked(j job) bool {
	g, t := j.limit(), j.task()
	if g == nil || t.limited {
		return true
	}
	if g.ofOwner && t.urgentLocked() { // it passes without waiting, with a place if there is one
		t.limited = g.enter()
		return true
	}
	jobs := d.limited[g]
	if jobs == nil {
		if t.limited = g.enter(); t.limited {
			return true
		}
		jobs = &limitedJobs{sessionShare: sessionShare{owner: d.room.owner, waiter: d}, jobs: newJobQueue(taskToLimit)}
	}
	if t.limited = g.enterOrQueue(&jobs.sessionShare, t.urgentLocked()); t.limited {
		return true
	}
	if d.limited == nil {
		d.limited = make(map[*concurrencyLimit]*limitedJobs)
	}
	d.limited[g] = jobs
	jobs.jobs.push(j)
	return false
}

// admit continues the next call of c, with the place at g that another one has left. It returns
// false if none waits. another reports that c got one more place, for further waiting calls, as more
// places became free at the same time.
func (d *dispatcher) admit(g *concurrencyLimit, c *sessionShare) (ok, another bool) {
	d.mu.Lock()
	jobs := d.limited[g]
	if jobs == nil || &jobs.sessionShare != c {
		d.mu.Unlock()
		return false, false // all of them were canceled
	}
	j := jobs.jobs.pop()
	if j == nil {
		d.mu.Unlock()
		return false, false
	}
	t := j.task()
	t.limited = true
	if jobs.jobs.len() > 0 {
		another = g.enterAgain(c)
	} else {
		delete(d.limited, g)
	}
	behind := g.passed(j, t.urgentLocked())
	d.mu.Unlock()
	d.queue(j)
	if behind {
		d.lend(j)
	}
	return true, another
}

// leaveLimitLocked removes the session share of the session at g if none of its calls waits there
// any more.
func (d *dispatcher) leaveLimitLocked(g *concurrencyLimit) {
	if jobs := d.limited[g]; jobs != nil && jobs.jobs.len() == 0 {
		delete(d.limited, g)
		g.dequeue(&jobs.sessionShare)
	}
}

// withdraw removes j from the place where it waits, because its caller has canceled, the session
// has ended, or too many calls wait. It releases the budget of j, and returns the previous state.
// If j did not wait, withdraw only stops a j that is arriving.
func (d *dispatcher) withdraw(j job) (before taskState) {
	d.mu.Lock()
	t := j.task()
	before = t.state
	in := d.queueOfLocked(j)
	if !t.moveLocked(taskWithdrawn) || !before.waits() {
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
	if before == taskForLimit {
		if t.urgentLocked() {
			j.limit().countUrgent(-1)
		}
		d.leaveLimitLocked(j.limit())
	}
	limited := t.limited
	grant := d.giveBackLocked(j.cost(), t.nested)
	d.mu.Unlock()
	d.grant(grant)
	j.unlist()
	d.release(j, limited)
	return before
}

// release releases the place of j, which has ended, at the concurrency limit of its function, and
// its turn.
func (d *dispatcher) release(j job, limited bool) {
	if limited {
		g := j.limit()
		g.waitsNoMore(j)
		g.vacate()
	}
	if k, t := j.turn(); t != nil {
		if next, behind := k.leave(t); next != nil {
			next.dispatcher().queue(next)
			if behind {
				next.dispatcher().lend(next)
			}
		}
	}
}
