package asterisque

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/fifo"
)

// dispatcher runs the calls of one session: at most limit at once, the others by priority, and in the order of their arrival.
//
// A worker that takes a call wakes the next one if more wait, and the reader wakes none while one is waking already. So a burst of short calls is run by as many
// workers as there are processors instead of one goroutine switch each, while calls that block never hold up others.
//
// A call waits in one place at a time: in the line of its key, until it is its turn (see keys); here, until a worker is free; and for a function that must not run too
// often at once, until another call of it has ended (see gate). Wherever it waits, it leaves at once when its caller gives up.
type dispatcher struct {
	s     *Session // fixed
	limit int      // fixed

	mu      sync.Mutex
	ready   line                   // guarded by mu, as all below: calls that wait for a worker
	behind  fifo.Queue[*enclosure] // those whose own worker is at work while calls wait; each once
	gated   map[*gate]*parked      // calls that wait for their function
	opens   openWindow
	waiting int  // calls that nobody has taken yet, wherever they wait
	running int  // calls that workers have taken
	active  int  // workers here, running or waking
	waking  bool // one of them has yet to take its first call

	mostWaiting, mostRunning int // at their highest

	lastWait atomic.Int64 // how long a call waited that was taken recently, in nanoseconds
}

// minRetryAfter is the least that a refused caller is advised to wait.
const minRetryAfter = 10 * time.Millisecond

// refuse counts a call of the peer that will not be put, and reports false if the window did not allow it.
func (d *dispatcher) refuse(nested bool) (ok bool) {
	d.mu.Lock()
	ok = nested || d.opens.arrive()
	grant := d.opens.take(nested)
	d.mu.Unlock()
	d.grant(grant)
	return ok
}

func (d *dispatcher) grant(total uint64) {
	if total > 0 {
		d.s.control(codec.Credit{Opens: true, Limit: total})
	}
}

// beginInline notes that the reader is about to run c. It reports false if that ended meanwhile, with the session.
func (d *dispatcher) beginInline(c *incoming) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.state != arrives {
		return false
	}
	c.state = runs
	return true
}

// put takes over c, which has just arrived. If too many calls wait already, it refuses the least urgent one, which may be c.
func (d *dispatcher) put(c *incoming) {
	d.mu.Lock()
	allowed := c.nested() || d.opens.arrive()
	if c.state != arrives {
		d.mu.Unlock()
		c.Taken(1, len(c.params))
		if m := c.memory(); m != nil {
			d.s.node.once.refuse(m)
		}
		return
	}
	excess := d.excessLocked(c)
	c.state = waits
	d.waiting++
	if !allowed || excess == c {
		d.mu.Unlock()
		d.giveUp(c, allowed)
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
	d.s.node.workers.start(j, wake)
	if excess != nil {
		d.giveUp(excess, true)
	}
	if c.handler.keys != nil && c.handler.keys.enter(c) {
		d.queue(c)
	}
}

// excessLocked returns the call that has to be refused for c to find room, c itself if all others are as urgent, and nil if there is room.
func (d *dispatcher) excessLocked(c *incoming) *incoming {
	if most := d.s.cfg.maxWaiting; most == 0 || d.waiting < most || c.lent() {
		return nil // a call that is made within another one waits for nobody, and that one would be in vain without it
	}
	if other := d.ready.lessUrgent(c.priority); other != nil {
		return other
	}
	return c
}

// giveUp refuses c, which waits, because there are too many, or more than were allowed.
func (d *dispatcher) giveUp(c *incoming, allowed bool) {
	switch {
	case d.leave(c) != waits:
	case allowed:
		c.refuse(codec.OverloadedFor(max(time.Duration(d.lastWait.Load()), minRetryAfter), "too many calls wait here"))
	default:
		c.refuse(errOpensWindow)
	}
}

// queue lets c, whose turn has come as far as its key goes, wait for a worker.
func (d *dispatcher) queue(c *incoming) {
	d.mu.Lock()
	j, wake := d.queueLocked(c)
	d.mu.Unlock()
	d.s.node.workers.start(j, wake)
}

// queueLocked is queue; j is to be started if wake is true.
func (d *dispatcher) queueLocked(c *incoming) (j job, wake bool) {
	if c.state != waits {
		return j, false
	}
	e := c.nest
	switch {
	case !c.lent():
		d.ready.push(c)
	case !e.busy:
		e.calls.push(c)
		e.busy = true
		return job{d: d, within: e}, true
	default: // busy perhaps for long: any worker may take c
		e.calls.push(c)
		if !e.behind {
			e.behind = true
			d.behind.Push(e)
		}
	}
	return job{d: d}, d.wakeLocked()
}

// work runs calls on the goroutine of a worker until none waits, and then the worker has left. It also returns true when it has to stand back for other sessions first.
func (d *dispatcher) work(k *scratch, j job, crowded *atomic.Bool) (again bool) {
	var last *incoming
	for woken := true; ; woken = false {
		if j.within == nil && d.s.node.workers.limit > 0 && d.s.mustWaitOutbound() {
			d.waitElsewhere(woken, last)
			return false
		}
		d.s.waitOutbound()
		c, wake, grant := d.take(j.within, woken, last)
		if c == nil {
			return false
		}
		d.s.node.workers.start(job{d: d}, wake)
		d.grant(grant)
		c.Taken(1, len(c.params))
		c.run(k)
		yield := j.within == nil && crowded.Load()
		if last = c; yield || c.holds() {
			d.done(c)
			last = nil
		}
		if yield {
			return d.standBack()
		}
	}
}

// standBack is called for a worker that gives way to other sessions. It reports whether the job is to be done again when its turn comes. Otherwise the worker has left: no call waits, or
// a job that is coming takes care of them. So a session waits in one place only among the others, however many calls it has, and however long they are all busy.
func (d *dispatcher) standBack() (again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waking || d.ready.len()+d.behind.Len() == 0 {
		d.active--
		return false
	}
	d.waking = true
	return true
}

// waitElsewhere lets a worker go that the node needs for other sessions, and another one come when this session may send again. woken says that nobody else is coming, last is
// as for take.
func (d *dispatcher) waitElsewhere(woken bool, last *incoming) {
	if last != nil {
		d.done(last)
	}
	if !woken && !d.standBack() {
		return
	}
	go func() { // ends at the latest with the session
		d.s.waitOutbound()
		d.s.node.workers.start(job{d: d}, true)
	}()
}

// take returns the next call, or nil if none waits, and then the worker has left. last is the call that the worker has run before, or nil. wake says that another worker is to be woken,
// grant what the peer is to be granted.
func (d *dispatcher) take(e *enclosure, woken bool, last *incoming) (c *incoming, wake bool, grant uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if last != nil {
		d.running--
		last.state = left
	}
	if e == nil && woken {
		d.waking = false
	}
	for c = d.nextLocked(e); c != nil && !d.passLocked(c); c = d.nextLocked(e) {
	}
	if c == nil {
		if e != nil {
			e.busy = false
		} else {
			d.active--
		}
		return nil, false, 0
	}
	c.state = runs
	d.waiting--
	d.running++
	d.mostRunning = max(d.mostRunning, d.running)
	return c, e == nil && d.ready.len()+d.behind.Len() > 0 && d.wakeLocked(), d.opens.take(c.nested())
}

// nextLocked returns the next call within e, or, if e is nil, the next one of all: first those that hold up another call.
func (d *dispatcher) nextLocked(e *enclosure) *incoming {
	if e != nil {
		c := e.calls.pop()
		if c == nil && e.behind {
			e.behind = false
			d.behind.Filter(func(o **enclosure) bool { return *o != e })
		}
		return c
	}
	for d.behind.Len() > 0 {
		e := d.behind.Pop()
		c := e.calls.pop()
		if e.behind = e.calls.len() > 0; e.behind {
			d.behind.Push(e)
		}
		if c != nil {
			return c
		}
	}
	return d.ready.pop()
}

// passLocked reports whether c may run as far as the gate of its function goes. Otherwise it waits there.
func (d *dispatcher) passLocked(c *incoming) bool {
	g := c.handler.gate
	if g == nil || c.gated || c.encloses(nil) {
		return true
	}
	p := g.enter(d, d.gated[g])
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

// admit lets the next call of p go on, with the place at g that another one has left. It reports false if none waits. another says that it has got one more place, if more
// calls wait, because others left at the same time.
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
	d.mu.Unlock()
	d.queue(c)
	return true, another
}

// unparkLocked forgets the place of the session at g if none of its calls waits there any more.
func (d *dispatcher) unparkLocked(g *gate) {
	if p := d.gated[g]; p != nil && p.calls.len() == 0 {
		delete(d.gated, g)
		g.forget(p)
	}
}

// done is called when c has run.
func (d *dispatcher) done(c *incoming) {
	d.mu.Lock()
	d.running--
	gated := c.gated
	c.state = left
	d.mu.Unlock()
	d.release(c, gated)
}

// queued reports whether c waits to be run.
func (d *dispatcher) queued(c *incoming) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return c.state == waits
}

// holds reports whether others may wait for the end of c.
func (c *incoming) holds() bool { return c.handler.keys != nil || c.handler.gate != nil }

// leave takes c out of wherever it waits, because its caller gave up, the session ended, or too many wait. What it held is free then. It returns how far c had got before; if
// c did not wait, it does nothing but keep one that arrives from getting further.
func (d *dispatcher) leave(c *incoming) (before place) {
	d.mu.Lock()
	before = c.state
	if before == arrives {
		c.state = left
	}
	if before != waits {
		d.mu.Unlock()
		return before
	}
	c.state = left
	d.waiting--
	if c.in != nil {
		c.in.left()
		if c.handler.gate != nil {
			d.unparkLocked(c.handler.gate)
		}
	}
	gated := c.gated
	grant := d.opens.take(c.nested())
	d.mu.Unlock()
	d.grant(grant)
	c.Taken(1, len(c.params))
	c.freeParams()
	d.release(c, gated)
	return before
}

// release gives back what c, which has left, held: its place at the gate of its function, and its turn.
func (d *dispatcher) release(c *incoming, gated bool) {
	if gated {
		c.handler.gate.leave()
	}
	if c.handler.keys != nil {
		if next := c.handler.keys.leave(c); next != nil {
			next.s.calls.queue(next)
		}
	}
}

// wakeLocked notes that one more worker is coming, if that is useful and allowed.
func (d *dispatcher) wakeLocked() bool {
	if d.waking || d.active >= d.limit {
		return false
	}
	d.waking = true
	d.active++
	return true
}

// load fills in what the statistics want to know.
func (d *dispatcher) load(st *Stats) {
	d.mu.Lock()
	defer d.mu.Unlock()
	st.Waiting, st.Running, st.MostWaiting, st.MostRunning, st.Served = d.waiting, d.running, d.mostWaiting, d.mostRunning, d.opens.received
}
