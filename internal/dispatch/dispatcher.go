// Package dispatch runs the calls of peers on workers that a node has in common.
//
// Each session has a [Dispatcher], which knows a call only as a [Job] with a [Task] in it. Put
// hands it a call that has arrived. The call waits for its turn in the [KeyedOrder] of its
// function, for a place at its [ConcurrencyLimit], for memory and for a worker, in one place at a
// time, and by priority. Withdraw removes it from there at any moment. The [Scheduler] of the node
// has the workers.
//
// A dispatcher also counts all that calls hold at this side besides the Blocks of streams: Opens,
// parameters of running calls, and answers that wait to leave. It grants the peer room for further
// Opens by its [Output].
package dispatch

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/quota"
)

// Dispatcher runs the calls of one session: at most as many at once as there are workers in its
// plan, by priority, and in the order of their arrival.
//
// A worker that takes a call wakes the next one if more calls wait, and the reader wakes none while
// one is waking already. A burst of short calls is therefore run by as many workers as there are
// processors, instead of one goroutine switch for each call, while blocking calls never delay other
// calls.
//
// A call waits in one place at a time: in the order of its key, until its turn (see KeyedOrder);
// here, until a worker is free; and for a function with a limit, until another call of the function
// has ended (see ConcurrencyLimit). It leaves each of these places at once when its caller cancels.
// A nested call does not wait for a worker: it borrows one.
type Dispatcher struct {
	scheduler *Scheduler   // these are fixed
	output    Output       // of the session
	windows   *flow.Budget // for the Blocks of streams; nil for a peer without windows
	plan      *flow.Plan   // grants at the begin of the session; bounds all running calls

	lastWait atomic.Int64 // recent time of a call in the queue, in nanoseconds

	mu      sync.Mutex
	jobs    waitingJobs // guarded by mu, as all below
	room    openRoom
	holding holding
	waiting int32 // calls that no worker has taken yet, in any place
	running int32 // calls that workers have taken, and calls with answers that wait to leave
	parked  parkedAnswers
	active  int32 // workers here, running or waking
	waking  bool  // one of them has yet to take its first call
	quiet   bool  // no call begins yet, except on a lent worker
	apart   uint8 // calls that run on additional workers, at most mostApart

	mostWaiting, mostRunning int32 // maxima of waiting and running
}

// Config holds the properties of a [Dispatcher].
type Config struct {
	Scheduler *Scheduler
	Output    Output
	Owner     *quota.Owner // of the session
	Plan      *flow.Plan
	Windows   *flow.Budget // for the Blocks of streams; nil for a peer without windows
}

// Init prepares d. A call of End follows.
func (d *Dispatcher) Init(c Config) {
	*d = Dispatcher{
		scheduler: c.Scheduler, output: c.Output, plan: c.Plan, windows: c.Windows,
		jobs: waitingJobs{ready: newJobQueue(taskToWorker)}, room: openRoom{owner: c.Owner},
	}
	if c.Windows != nil {
		d.room.opens = flow.NewOpens(c.Plan)
	}
	d.holding.begin(c.Owner)
}

// End withdraws the bytes of d from its owner. No call runs or waits any more.
func (d *Dispatcher) End() { d.holding.end() }

// mostApart is the number of calls of a session that only wait, as [WatchHealth] does, and run on
// additional workers. Further ones need a worker as all other calls. Without additional workers, a
// watched session with a single worker could run no other call.
const mostApart = 4

// Scheduler is the common state of a node's sessions for running calls. Its methods are safe for
// concurrent use, after Init.
type Scheduler struct {
	workers workers
	nested  quota.Slots // places for nested calls
	most    int         // bound of waiting calls of a session; 0: none; fixed
}

// SchedulerConfig holds the bounds of a node.
type SchedulerConfig struct {
	Workers int           // that run at once, without lent ones; 0: any number
	Waiting int           // waiting calls of a session; 0: any number
	Nested  int64         // nested calls of all sessions
	Owners  *quota.Owners // of the sessions
}

// Init prepares s. A call of End follows.
func (s *Scheduler) Init(c SchedulerConfig) {
	s.workers.limit, s.most = c.Workers, c.Waiting
	s.nested.Owners, s.nested.Max = c.Owners, c.Nested
}

// End ends all workers, the busy ones after their calls.
func (s *Scheduler) End() { s.workers.end() }

// Stats returns the present numbers of workers.
func (s *Scheduler) Stats() WorkerStats { return s.workers.crew() }

// NestedInUse returns the number of places for nested calls in use.
func (s *Scheduler) NestedInUse() int { return s.nested.InUse() }

// Output is the interface of a dispatcher to the peer.
type Output interface {
	// Grant sends the total that the peer may open.
	Grant(total uint64)

	// WaitOutbound blocks a worker while answers would only pile up.
	WaitOutbound()

	// MustWaitOutbound reports whether WaitOutbound would block.
	MustWaitOutbound() bool
}

// NoteWait records how long a call has waited for a worker, as advice for rejected ones.
func (d *Dispatcher) NoteWait(t time.Duration) { d.lastWait.Store(int64(t)) }

// Waits reports whether j waits to be run.
func (d *Dispatcher) Waits(j Job) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return j.Task().state.Waits()
}

// beginLocked records that a worker is about to run j, by the event e.
func (d *Dispatcher) beginLocked(j Job, e event) {
	t := j.Task()
	t.moveLocked(e)
	d.waiting--
	d.running++
	d.mostRunning = max(d.mostRunning, d.running)
	d.holding.carry(j, d.plan.Room, 1)
	if t.limited {
		j.Limit().waitsNoMore(j)
	}
}

// endLocked records that the handler of j has returned.
func (d *Dispatcher) endLocked(j Job) {
	t := j.Task()
	if t.apartLocked() {
		d.apart--
	}
	t.moveLocked(taskReturned)
	d.running--
	if t.urged {
		d.room.urgeNoMore(&d.scheduler.nested)
	}
	d.holding.carry(j, d.plan.Room, -1)
}

// poke is called when a call that waited for memory may run.
func (d *Dispatcher) poke() {
	d.mu.Lock()
	wake := d.pokeLocked()
	d.mu.Unlock()
	d.scheduler.workers.start(wake)
}

// Pause makes all calls wait until Start, except those on lent workers. It comes before the first
// call.
func (d *Dispatcher) Pause() { d.quiet = true }

// Start ends a pause.
func (d *Dispatcher) Start() {
	d.mu.Lock()
	d.quiet = false
	d.mu.Unlock()
	d.poke()
}

// pokeLocked counts one more worker as active, if there is a call for it. It returns the work
// source for the worker, if any.
func (d *Dispatcher) pokeLocked() workSource {
	if d.jobs.ready.len() == 0 {
		j := d.jobs.large.first()
		if j == nil || !d.holding.fits(j, d.plan.Room) {
			return workSource{}
		}
	}
	return d.wakeLocked()
}

// wakeLocked is pokeLocked if a call is known to wait.
func (d *Dispatcher) wakeLocked() workSource {
	if d.quiet || d.waking || d.occupiedLocked() >= d.plan.Workers {
		return workSource{}
	}
	d.waking = true
	d.active++
	return workSource{d: d}
}

// occupiedLocked returns the number of the plan's workers in use: active ones, and those with
// answers that wait to leave.
func (d *Dispatcher) occupiedLocked() int { return int(d.active + d.parked.running) }

// Plan returns the plan of the grants at the begin of the session.
func (d *Dispatcher) Plan() *flow.Plan { return d.plan }
