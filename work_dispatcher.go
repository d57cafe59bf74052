package asterisque

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/limits"
)

// dispatcher runs the calls of one session: at most as many at once as there are workers in its
// plan, by priority, and in the order of their arrival.
//
// A worker that takes a call wakes the next one if more calls wait, and the reader wakes none while
// one is waking already. A burst of short calls is therefore run by as many workers as there are
// processors, instead of one goroutine switch for each call, while blocking calls never delay other
// calls.
//
// A call waits in one place at a time: in the order of its key, until its turn (see keyedOrder);
// here, until a worker is free; and for a function with a limit, until another call of the function
// has ended (see concurrencyLimit). It leaves each of these places at once when its caller cancels.
// A nested call does not wait for a worker: it borrows one.
type dispatcher struct {
	scheduler *scheduler     // these are fixed
	output    dispatchOutput // of the session
	windows   *limits.Room   // for the Blocks of streams; nil for a peer without windows
	plan      *limits.Plan   // grants at the begin of the session; bounds all running calls

	lastWait atomic.Int64 // recent time of a call in the queue, in nanoseconds

	mu    sync.Mutex
	ready jobQueue // guarded by mu, as all below: calls that wait for a worker
	// calls in their turn that wait for memory; nil until there is one
	large   *jobQueue
	limited map[*concurrencyLimit]*limitedJobs // calls that wait for their function
	room    openRoom
	holding holding
	served  uint64 // calls that have arrived
	waiting int32  // calls that no worker has taken yet, in any place
	running int32  // calls that workers have taken, and calls with answers that wait to leave
	parked  queuedAnswers
	streams int32 // running calls that carry Blocks
	active  int32 // workers here, running or waking
	waking  bool  // one of them has yet to take its first call
	quiet   bool  // no call begins yet, except on a lent worker
	apart   uint8 // calls that run on additional workers, at most mostApart

	mostWaiting, mostRunning int32 // maxima of waiting and running
}

// dispatchConfig holds the properties of a dispatcher.
type dispatchConfig struct {
	Scheduler *scheduler
	Output    dispatchOutput
	Owner     *quota.Owner // of the session
	Plan      *limits.Plan
	Windows   *limits.Room // for the Blocks of streams; nil for a peer without windows
}

// init prepares d. A call of end follows.
func (d *dispatcher) init(c dispatchConfig) {
	*d = dispatcher{
		scheduler: c.Scheduler, output: c.Output, plan: c.Plan, windows: c.Windows,
		ready: newJobQueue(taskToWorker), room: openRoom{owner: c.Owner},
	}
	if c.Windows != nil {
		d.room.opens = limits.NewOpens(c.Plan)
	}
	d.holding.begin(c.Owner)
}

// end withdraws the bytes of d from its owner. No call runs or waits any more.
func (d *dispatcher) end() { d.holding.end() }

// mostApart is the number of calls of a session that only wait, as [WatchHealth] does, and run on
// additional workers. Further ones need a worker as all other calls. Without additional workers, a
// watched session with a single worker could run no other call.
const mostApart = 4

// scheduler is the common state of a node's sessions for running calls. Its methods are safe for
// concurrent use, after init.
type scheduler struct {
	workers workers
	nested  quota.Slots // places for nested calls
	most    int         // bound of waiting calls of a session; 0: none; fixed
}

// schedulerConfig holds the bounds of a node.
type schedulerConfig struct {
	Workers int           // that run at once, without lent ones; 0: any number
	Waiting int           // waiting calls of a session; 0: any number
	Nested  int64         // nested calls of all sessions
	Owners  *quota.Owners // of the sessions
}

// init prepares s. A call of end follows.
func (s *scheduler) init(c schedulerConfig) {
	s.workers.limit, s.most = c.Workers, c.Waiting
	s.nested.Owners, s.nested.Max = c.Owners, c.Nested
}

// end ends all workers, the busy ones after their calls.
func (s *scheduler) end() { s.workers.end() }

// stats returns the present numbers of workers.
func (s *scheduler) stats() workerCount { return s.workers.crew() }

// nestedInUse returns the number of places for nested calls in use.
func (s *scheduler) nestedInUse() int { return s.nested.InUse() }

// dispatchOutput is the interface of a dispatcher to the peer.
type dispatchOutput interface {
	// grant sends the total that the peer may open.
	grant(total uint64)

	// waitOutbound blocks a worker while answers would only pile up.
	waitOutbound()

	// mustWaitOutbound reports whether waitOutbound would block.
	mustWaitOutbound() bool
}

// limitedJobs are the calls of a session that wait for one concurrency limit.
type limitedJobs struct {
	sessionShare
	jobs jobQueue // empty only while the concurrency limit removes them
}

// noteWait records how long a call has waited for a worker, as advice for rejected ones.
func (d *dispatcher) noteWait(t time.Duration) { d.lastWait.Store(int64(t)) }

// waits reports whether j waits to be run.
func (d *dispatcher) waits(j job) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return j.task().state.waits()
}

// beginLocked records that a worker is about to run j, by the event e.
func (d *dispatcher) beginLocked(j job, e taskEvent) {
	t := j.task()
	t.moveLocked(e)
	d.waiting--
	d.running++
	d.mostRunning = max(d.mostRunning, d.running)
	d.holding.carry(j, d.plan.Room, 1)
	if t.blocks {
		d.streams++
	}
	if t.limited {
		j.limit().waitsNoMore(j)
	}
}

// endLocked records that the handler of j has returned.
func (d *dispatcher) endLocked(j job) {
	t := j.task()
	if t.apartLocked() {
		d.apart--
	}
	t.moveLocked(taskReturned)
	d.running--
	if t.urged {
		d.room.urgeNoMore(&d.scheduler.nested)
	}
	d.holding.carry(j, d.plan.Room, -1)
	if t.blocks {
		d.streams--
	}
}

// poke is called when a call that waited for memory may run.
func (d *dispatcher) poke() {
	d.mu.Lock()
	wake := d.pokeLocked()
	d.mu.Unlock()
	d.scheduler.workers.start(wake)
}

// pause makes all calls wait until letGo, except those on lent workers. It comes before the first
// call.
func (d *dispatcher) pause() { d.quiet = true }

// letGo ends a pause.
func (d *dispatcher) letGo() {
	d.mu.Lock()
	d.quiet = false
	d.mu.Unlock()
	d.poke()
}

// pokeLocked counts one more worker as active, if there is a call for it. It returns the work
// source for the worker, if any.
func (d *dispatcher) pokeLocked() workSource {
	if d.ready.len() == 0 {
		j := d.large.first()
		if j == nil || !d.holding.fits(j, d.plan.Room) {
			return workSource{}
		}
	}
	return d.wakeLocked()
}

// wakeLocked is pokeLocked if a call is known to wait.
func (d *dispatcher) wakeLocked() workSource {
	if d.quiet || d.waking || d.occupiedLocked() >= d.plan.Workers {
		return workSource{}
	}
	d.waking = true
	d.active++
	return workSource{d: d}
}

// occupiedLocked returns the number of the plan's workers in use: active ones, and those with
// answers that wait to leave.
func (d *dispatcher) occupiedLocked() int { return int(d.active + d.parked.running) }

// queuedAnswers counts answers that wait to leave.
type queuedAnswers struct {
	running int32 // of calls with a worker of their own: they count as running calls
	lent    int32 // of nested calls
	away    int32 // of calls that were answered by the reader
}
