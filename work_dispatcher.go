package asterisque

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/limits"
)

// dispatcher runs the calls of one session: at most as many at once as there are workers in its
// plan, the others by priority, and in the order of their arrival.
//
// A worker that takes a call wakes the next one if more wait, and the reader wakes none while one
// is waking already. So a burst of short calls is run by as many workers as there are processors
// instead of one goroutine switch each, while calls that block never hold up others.
//
// A call waits in one place at a time: in the line of its key, until it is its turn (see keys);
// here, until a worker is free; and for a function that must not run too often at once, until
// another call of it has ended (see gate). Wherever it waits, it leaves at once when its caller
// gives up. A call that is made within another one waits for no worker: one is lent to it.
type dispatcher struct {
	s    *Session     // fixed
	plan *limits.Plan // what was promised at first, by which all that runs is bounded; fixed

	mu    sync.Mutex
	ready line // guarded by mu, as all below: calls that wait for a worker
	// those whose turn it was, and for what they hold there was no room; nil until there is one
	large   *line
	gated   map[*gate]*parked // calls that wait for their function
	opens   limits.Opens
	served  uint64 // calls that have arrived
	waiting int    // calls that nobody has taken yet, wherever they wait
	running int    // calls that workers have taken, and those whose answers wait to leave
	active  int    // workers here, running or waking
	waking  bool   // one of them has yet to take its first call
	parked  int    // answers of calls that had a worker, which wait to leave
	away    int    // answers of calls that were answered by the reader, which do
	lent    int    // answers to calls within calls, which do
	answers int    // bytes that those hold
	// bytes that running calls hold: parameters and what they become, and answers that wait to
	// leave
	holding int
	// of that, what calls hold that exceed the room by themselves, beyond what counts of them
	beyond  int
	bulky   int         // running calls that are not small
	part    limits.Part // holding, for the owner of the session
	streams int         // running calls that carry Blocks
	nested  int         // calls within calls that are here
	inner   int         // what they cost
	inside  int         // bytes that the parameters of those that run become

	mostWaiting, mostRunning int // at their highest

	lastWait atomic.Int64 // how long a call waited that was taken recently, in nanoseconds
}

// minRetryAfter is the least that a refused caller is advised to wait.
const minRetryAfter = 10 * time.Millisecond

// beginInline notes that the reader is about to run c, or returns why it is not: it has to be
// refused, or nil if it ended meanwhile, with the session.
func (d *dispatcher) beginInline(c *incoming) (ok bool, refused *Abort) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.state != arrives {
		return false, nil
	}
	if !c.counted() {
		if refused = d.arriveLocked(c.cost(), c.nested()); refused != nil {
			c.state = left
			return false, refused
		}
	}
	if d.holding-d.beyond > d.plan.Room {
		c.extra().counted = true
		return false, errCrowded
	}
	c.state = runs
	return true, nil
}

// errCrowded is why the reader does not run an inline function: answers that wait hold all the room
// for running calls, and a worker takes the call when they have left.
var errCrowded = codec.ErrOverloaded.Withf("answers wait to be sent")

// put takes over c, which has just arrived. If too many calls wait already, it refuses the least
// urgent one, which may be c.
func (d *dispatcher) put(c *incoming) {
	d.mu.Lock()
	var refused *Abort
	if c.state == arrives {
		refused = d.insideLocked(c)
		if refused == nil && !c.counted() {
			refused = d.arriveLocked(c.cost(), c.nested())
		}
	}
	if c.state != arrives || refused != nil {
		c.state = left
		var grant uint64
		if c.counted() {
			grant = d.giveBackLocked(c.cost(), c.nested())
		}
		d.mu.Unlock()
		d.grant(grant)
		c.taken()
		c.freeParams()
		if refused != nil {
			c.refuse(refused)
		} else if m := c.memory(); m != nil {
			d.s.shared.once.refuse(m)
		}
		return
	}
	excess := d.excessLocked(c)
	c.state = inHand
	d.waiting++
	if excess == c {
		d.mu.Unlock()
		d.giveUp(c)
		return
	}
	if excess == nil {
		d.mostWaiting = max(d.mostWaiting, d.waiting)
	}
	var j job
	wake := false
	if c.handler.keys == nil {
		j, wake = d.queueLocked(c)
	}
	d.mu.Unlock()
	d.s.shared.workers.start(j, wake)
	if excess != nil {
		d.giveUp(excess)
	}
	if k := c.handler.keys; k != nil {
		turn, holder := k.enter(c)
		if turn {
			d.queue(c)
		} else if holder != nil {
			holder.s.calls.lend(holder)
		}
	}
	if g := c.gate(); g != nil && c.nested() {
		g.lend()
	}
}

// excessLocked returns the call that has to be refused for c to find room, c itself if all others
// are as urgent, and nil if there is room.
func (d *dispatcher) excessLocked(c *incoming) *incoming {
	if most := d.s.cfg.maxWaiting; most == 0 || d.waiting < most || c.nested() {
		// a call that is made within another one waits for nobody, and that one would be in vain
		// without it
		return nil
	}
	if other := d.ready.lessUrgent(c.priority); other != nil {
		return other
	}
	return c
}

// giveUp refuses c, which waits, because there are too many.
func (d *dispatcher) giveUp(c *incoming) {
	if d.leave(c).waits() {
		c.refuse(codec.OverloadedFor(max(time.Duration(d.lastWait.Load()), minRetryAfter), "too many calls wait here"))
	}
}

// queue lets c, whose turn has come as far as its key goes, wait for a worker.
func (d *dispatcher) queue(c *incoming) {
	d.mu.Lock()
	j, wake := d.queueLocked(c)
	parks := c.state == inGate && c.urgent()
	d.mu.Unlock()
	d.s.shared.workers.start(j, wake)
	if parks {
		c.gate().lend()
	}
}

// queueLocked is queue; j is to be started if wake is true.
func (d *dispatcher) queueLocked(c *incoming) (j job, wake bool) {
	switch {
	case !c.state.waits():
		return j, false
	case c.urgent():
		return d.lendLocked(c)
	}
	d.ready.push(c)
	return job{d: d}, d.wakeLocked()
}

// lend lends a worker to c, for whose end a call within another one waits, as soon as c waits for
// nothing else.
func (d *dispatcher) lend(c *incoming) {
	d.mu.Lock()
	if !c.state.waits() || c.urged {
		d.mu.Unlock()
		return
	}
	c.urged = true
	var j job
	wake, parks := false, false
	switch in := d.lineLocked(c); c.state {
	case inGate:
		c.gate().urge()
		parks = true
	case inReady, inLarge:
		j, wake = d.lendLocked(c)
		parks = !wake
		in.left()
	} // else somebody is about to queue it
	d.mu.Unlock()
	d.s.shared.workers.start(j, wake)
	if parks {
		c.gate().lend() // those whose places it waits for may wait for a worker as well
	}
}

// lineLocked returns the line in which c waits, or nil if it is in none.
func (d *dispatcher) lineLocked(c *incoming) *line {
	switch c.state {
	case inReady:
		return &d.ready
	case inLarge:
		return d.large
	case inGate:
		return &d.gated[c.gate()].calls
	}
	return nil
}

// lendLocked lets c run on a worker beyond the limit, if its function allows it now.
func (d *dispatcher) lendLocked(c *incoming) (j job, wake bool) {
	if !c.state.waits() || !d.passLocked(c) {
		return j, false
	}
	d.beginLocked(c)
	return job{d: d, call: c}, true
}

// beginLocked notes that a worker is about to run c.
func (d *dispatcher) beginLocked(c *incoming) {
	c.state = runs
	d.waiting--
	d.running++
	d.mostRunning = max(d.mostRunning, d.running)
	d.carryLocked(c, 1)
	if c.pipe != nil {
		d.streams++
	}
	if c.gated {
		c.gate().begun(c)
	}
}

// runLent runs one call on a worker that was lent to it.
func (d *dispatcher) runLent(k *scratch, c *incoming) {
	var h limits.Hold
	if c.pipe != nil && d.s.terms.Room != nil {
		d.s.terms.Room.Lend(&h)
	}
	if !c.nested() { // its worker is lent, but its Open was not
		d.giveBack(c.cost(), false)
	}
	k.call, k.lent = c, true
	c.begin(h)
	c.run(k)
	k.lent = false
	d.done(c, false)
}

// lost is called when the goroutine of a worker was ended by the call that it had taken. It reports
// whether the job for which it had come is to be done again, by another one.
func (d *dispatcher) lost(k *scratch) (again bool) {
	d.done(k.call, !k.lent)
	return !k.lent && d.standBack()
}

// work runs calls on the goroutine of a worker until none waits, and then the worker has left. It
// also returns true when it has to stand back for other sessions first.
func (d *dispatcher) work(k *scratch, j job, crowded *atomic.Bool) (again bool) {
	if j.call != nil {
		d.runLent(k, j.call)
		return false
	}
	var last *incoming
	for woken := true; ; woken = false {
		if d.s.terms.Room == nil {
			if d.s.shared.workers.limit > 0 && d.s.mustWaitOutbound() {
				d.waitElsewhere(woken, last)
				return false
			}
			d.s.waitOutbound()
		}
		t := d.take(woken, last)
		if t.call == nil {
			return false
		}
		k.call = t.call
		d.s.shared.workers.start(job{d: d}, t.wake)
		d.grant(t.grant)
		c := t.call
		c.begin(t.hold)
		c.run(k)
		yield := crowded.Load()
		if last = c; yield || c.holds() {
			d.done(c, true)
			last = nil
		}
		if yield {
			return d.standBack()
		}
	}
}

// standBack is called for a worker that gives way to other sessions. It reports whether the job is
// to be done again when its turn comes. Otherwise the worker has left: no call waits, or a job that
// is coming takes care of them. So a session waits in one place only among the others, however many
// calls it has, and however long they are all busy.
func (d *dispatcher) standBack() (again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waking || d.ready.len()+d.large.len() == 0 || d.active+d.parked > d.plan.Workers {
		d.active--
		return false
	}
	d.waking = true
	return true
}

// waitElsewhere lets a worker go that the node needs for other sessions, and another one come when
// this session may send again. woken says that nobody else is coming, last is as for take.
func (d *dispatcher) waitElsewhere(woken bool, last *incoming) {
	if last != nil {
		d.done(last, true)
	}
	if !woken && !d.standBack() {
		return
	}
	go func() { // ends at the latest with the session
		d.s.waitOutbound()
		d.s.shared.workers.start(job{d: d}, true)
	}()
}

// taken is a call that a worker has taken.
type taken struct {
	call  *incoming   // nil if none waits, and then the worker has left
	hold  limits.Hold // the window of its Blocks
	wake  bool        // another worker is to be woken
	grant uint64      // what the peer is to be granted
}

// take returns the next call. last is the call that the worker has run before, or nil.
func (d *dispatcher) take(woken bool, last *incoming) (t taken) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if last != nil {
		d.endLocked(last)
	}
	if woken {
		d.waking = false
	}
	if d.active+d.parked <= d.plan.Workers {
		t.call = d.nextLocked(&t.hold)
	}
	if t.call == nil {
		d.active--
		return t
	}
	d.beginLocked(t.call)
	t.grant = d.giveBackLocked(t.call.cost(), false)
	t.wake = d.pokeLocked()
	return t
}

// nextLocked returns the next call that may run, with its window in h.
func (d *dispatcher) nextLocked(h *limits.Hold) *incoming {
	if c := d.large.first(); c != nil && !d.ready.above(c.priority) && d.roomLocked(c, h) {
		return d.large.pop()
	}
	for {
		c := d.ready.pop()
		switch {
		case c == nil:
			return nil
		case !d.passLocked(c):
		case !d.behindLocked(c) && d.roomLocked(c, h):
			return c
		case c.gated && c.gate().keeps(c): // as if a worker were lent
			if c.pipe != nil && d.s.terms.Room != nil {
				d.s.terms.Room.Lend(h)
			}
			return c
		default:
			d.largeLocked().push(c)
		}
	}
}

// passLocked reports whether c may run as far as the gate of its function goes. Otherwise it waits
// there.
func (d *dispatcher) passLocked(c *incoming) bool {
	g := c.gate()
	if g == nil || c.gated || c.withinSame(nil) {
		return true
	}
	p := g.enter(d, d.gated[g], c.urgent())
	if c.gated = p == nil; c.gated {
		return true
	}
	if d.gated == nil {
		d.gated = make(map[*gate]*parked)
	}
	d.gated[g] = p
	p.calls.push(c)
	return false
}

// admit lets the next call of p go on, with the place at g that another one has left. It reports
// false if none waits. another says that it has got one more place, if more calls wait, because
// others left at the same time.
func (d *dispatcher) admit(g *gate, p *parked) (ok, another bool) {
	d.mu.Lock()
	c := p.calls.pop()
	if c == nil {
		d.mu.Unlock()
		return false, false
	}
	c.gated = true
	if p.calls.len() > 0 {
		another = g.again(p)
	} else {
		delete(d.gated, g)
	}
	behind := g.placed(c)
	d.mu.Unlock()
	d.queue(c)
	if behind {
		d.lend(c)
	}
	return true, another
}

// unparkLocked forgets the place of the session at g if none of its calls waits there any more.
func (d *dispatcher) unparkLocked(g *gate) {
	if p := d.gated[g]; p != nil && p.calls.len() == 0 {
		delete(d.gated, g)
		g.forget(p)
	}
}

// done is called when c has run. owned says that its worker was not lent.
func (d *dispatcher) done(c *incoming, owned bool) {
	d.mu.Lock()
	d.endLocked(c)
	gated := c.gated
	wake := !owned && d.pokeLocked()
	d.mu.Unlock()
	d.s.shared.workers.start(job{d: d}, wake)
	d.release(c, gated)
}

// endLocked notes that the handler of c has returned.
func (d *dispatcher) endLocked(c *incoming) {
	c.state = left
	d.running--
	d.carryLocked(c, -1)
	if c.pipe != nil {
		d.streams--
	}
}

// pokeLocked notes that one more worker is coming, if one has something to do.
func (d *dispatcher) pokeLocked() bool {
	if d.ready.len() == 0 {
		c := d.large.first()
		if c == nil || !d.fitsLocked(c) {
			return false
		}
	}
	return d.wakeLocked()
}

// queued reports whether c waits to be run.
func (d *dispatcher) queued(c *incoming) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return c.state.waits()
}

// holds reports whether others may wait for the end of c.
func (c *incoming) holds() bool { return c.handler.keys != nil || c.gate() != nil }

// begin is called when a worker is about to run c: its Open does not wait any more, and its Blocks
// have a window of their own.
func (c *incoming) begin(h limits.Hold) {
	c.taken()
	if c.pipe != nil {
		(*piping.End)(c.pipe).BeginHandler(h)
	}
}

// leave takes c out of wherever it waits, because its caller gave up, the session ended, or too
// many wait. What it held is free then. It returns how far c had got before; if c did not wait, it
// does nothing but keep one that arrives from getting further.
func (d *dispatcher) leave(c *incoming) (before place) {
	d.mu.Lock()
	before = c.state
	if before == arrives {
		c.state = left
	}
	if !before.waits() {
		d.mu.Unlock()
		return before
	}
	in := d.lineLocked(c)
	c.state = left
	d.waiting--
	if in != nil {
		in.left()
		if before == inGate {
			if c.urgent() {
				c.gate().goneUrgent()
			}
			d.unparkLocked(c.gate())
		}
	}
	gated := c.gated
	grant := d.giveBackLocked(c.cost(), c.nested())
	d.mu.Unlock()
	d.grant(grant)
	c.taken()
	c.freeParams()
	d.release(c, gated)
	return before
}

// release gives back what c, which has left, held: its place at the gate of its function, and its
// turn.
func (d *dispatcher) release(c *incoming, gated bool) {
	if gated {
		c.gate().begun(c)
		c.gate().leave()
	}
	if k := c.handler.keys; k != nil {
		if next, behind := k.leave(c); next != nil {
			next.s.calls.queue(next)
			if behind {
				next.s.calls.lend(next)
			}
		}
	}
}

// wakeLocked notes that one more worker is coming, if that is useful and allowed.
func (d *dispatcher) wakeLocked() bool {
	if d.waking || d.active+d.parked >= d.plan.Workers {
		return false
	}
	d.waking = true
	d.active++
	return true
}

// held returns how many bytes running calls hold.
func (d *dispatcher) held() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.holding
}

// load fills in what the statistics want to know.
func (d *dispatcher) load(st *Stats) {
	d.mu.Lock()
	defer d.mu.Unlock()
	st.Waiting, st.Running, st.MostWaiting, st.MostRunning, st.Served = d.waiting, d.running, d.mostWaiting, d.mostRunning, d.served
	st.Parked, st.Holding = d.parked+d.away+d.lent, d.holding+(d.running-d.parked)*(heldPlace+heldUnary)+d.streams*(heldStream-heldUnary)
	st.Opens = Share{Room: d.opens.Room(), Promised: d.opens.Promised(), Held: d.opens.Held()}
	st.Nested = Share{Room: d.plan.Nested, Promised: d.plan.Nested, Held: d.inner}
}
