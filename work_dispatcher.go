package asterisque

import (
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/limits"
)

// dispatcher runs the calls of one session: at most as many at once as there are workers in its
// plan, the others by priority, and in the order of their arrival.
//
// A worker that takes a call wakes the next one if more wait, and the reader wakes none while one
// is waking already. So a burst of short calls is run by as many workers as there are processors
// instead of one goroutine switch each, while calls that block never hold up others.
//
// A call waits in one place at a time: in the order of its key, until it is its turn (see keys);
// here, until a worker is free; and for a function that must not run too often at once, until
// another call of it has ended (see gate). Wherever it waits, it leaves at once when its caller
// gives up. A call that is made within another one waits for no worker: one is lent to it.
type dispatcher struct {
	staff   *staff       // these are fixed
	outlet  outlet       // of the session
	windows *limits.Room // for the Blocks of streams; nil for a peer without windows
	plan    *limits.Plan // what was promised at first, by which all that runs is bounded

	lastWait atomic.Int64 // how long a call waited that was taken recently, in nanoseconds

	mu    sync.Mutex
	ready jobQueue // guarded by mu, as all below: calls that wait for a worker
	// those whose turn it was, and for what they hold there was no room; nil until there is one
	large   *jobQueue
	gated   map[*gate]*gatedJobs // calls that wait for their function
	room    openRoom
	holding holding
	served  uint64 // calls that have arrived
	waiting int32  // calls that nobody has taken yet, wherever they wait
	running int32  // calls that workers have taken, and those whose answers wait to leave
	parked  parkedAnswers
	streams int32 // of those, how many carry Blocks
	active  int32 // workers here, running or waking
	waking  bool  // one of them has yet to take its first call
	quiet   bool  // no call begins yet, but those that are lent a worker
	apart   uint8 // calls that run on workers beyond those, at most mostApart

	mostWaiting, mostRunning int32 // waiting and running at their highest
}

// mostApart is how many calls of a session that only wait, as [WatchHealth] does, run beside its
// workers. Further ones need a worker as all others do. Without that, one that is watched could do
// nothing else with a single worker.
const mostApart = 4

// staff is what the sessions of a node share that run calls.
type staff struct {
	workers workers
	nested  reserve // places for calls within calls
	most    int     // how many calls of a session may wait; 0: any number; fixed
	durable durableAnswers
}

// outlet is how a dispatcher reaches the peer.
type outlet interface {
	// grant tells the peer how much it may open in all.
	grant(total uint64)

	// waitOutbound holds a worker back while answers would only pile up.
	waitOutbound()

	// mustWaitOutbound reports whether waitOutbound would wait.
	mustWaitOutbound() bool
}

// gatedJobs are the calls of a session that wait for one gate.
type gatedJobs struct {
	gateCrowd
	jobs jobQueue // empty only while the gate forgets them
}

// waits reports whether j waits to be run.
func (d *dispatcher) waits(j job) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return j.task().state.waits()
}

// beginLocked notes that a worker is about to run j; e says which.
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
	if t.gated {
		j.gate().waitsNoMore(j)
	}
}

// endLocked notes that the handler of j has returned.
func (d *dispatcher) endLocked(j job) {
	t := j.task()
	if t.apartLocked() {
		d.apart--
	}
	t.moveLocked(taskReturned)
	d.running--
	if t.urged {
		d.room.urgeNoMore(&d.staff.nested)
	}
	d.holding.carry(j, d.plan.Room, -1)
	if t.blocks {
		d.streams--
	}
}

// poke is called when a call may run that had no room.
func (d *dispatcher) poke() {
	d.mu.Lock()
	wake := d.pokeLocked()
	d.mu.Unlock()
	d.staff.workers.start(wake)
}

// letGo lets workers take calls from now on: see quiet.
func (d *dispatcher) letGo() {
	d.mu.Lock()
	d.quiet = false
	d.mu.Unlock()
	d.poke()
}

// pokeLocked notes that one more worker is coming, if one has something to do. It returns the shift
// for that, or nil.
func (d *dispatcher) pokeLocked() shift {
	if d.ready.len() == 0 {
		j := d.large.first()
		if j == nil || !d.holding.fits(j, d.plan.Room) {
			return nil
		}
	}
	return d.wakeLocked()
}

// wakeLocked is pokeLocked if something is known to wait.
func (d *dispatcher) wakeLocked() shift {
	if d.quiet || d.waking || d.occupiedLocked() >= d.plan.Workers {
		return nil
	}
	d.waking = true
	d.active++
	return d
}

// occupiedLocked returns how many of the workers that the plan has are here, or are as good as
// here: their answers wait to leave.
func (d *dispatcher) occupiedLocked() int { return int(d.active + d.parked.running) }

// parkedAnswers counts answers that wait to leave.
type parkedAnswers struct {
	running int32 // of calls that had a worker of their own: they count as running calls
	lent    int32 // of calls within calls
	away    int32 // of calls that were answered by the reader
}
