package asterisque

import (
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/priority"
)

// dispatcher runs the calls of one session: at most limit at once, the others by priority, and in the order of their arrival.
//
// A worker that takes a call wakes the next one if more wait, and the reader wakes none while one is waking already. So a burst of short calls is run by as many
// workers as there are processors instead of one goroutine switch each, while calls that block never hold up others.
type dispatcher struct {
	s     *Session // fixed
	limit int      // fixed

	mu      sync.Mutex
	waiting priority.Lines[*incoming] // guarded by mu, as all below
	opens   openWindow
	active  int  // workers here, running or waking
	waking  bool // one of them has yet to take its first call
}

// arrive counts a call of the peer and reports false if the window did not allow it.
func (d *dispatcher) arrive() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.opens.arrive()
}

// refused counts a call of the peer that will not be put as taken.
func (d *dispatcher) refused() {
	d.mu.Lock()
	grant := d.opens.take()
	d.mu.Unlock()
	d.grant(grant)
}

func (d *dispatcher) grant(total uint64) {
	if total > 0 {
		d.s.control(codec.Credit{Opens: true, Limit: total})
	}
}

// put takes c over to be run.
func (d *dispatcher) put(c *incoming) {
	d.mu.Lock()
	d.waiting.Push(c.priority, c)
	wake := d.wakeLocked()
	d.mu.Unlock()
	if wake {
		d.s.node.workers.run(d)
	}
}

// work runs calls on the goroutine of a worker until none waits.
func (d *dispatcher) work(k *scratch) {
	for woken := true; ; woken = false {
		d.s.waitOutbound()
		c, wake, grant := d.take(woken)
		if c == nil {
			return
		}
		if wake {
			d.s.node.workers.run(d)
		}
		d.grant(grant)
		c.Taken(1, len(c.params))
		c.run(k)
	}
}

// take returns the next call, or nil if none waits, and then the worker has left. wake says that another worker is to be woken, grant what the peer is to be
// granted.
func (d *dispatcher) take(woken bool) (c *incoming, wake bool, grant uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if woken {
		d.waking = false
	}
	c, ok := d.waiting.Pop()
	if !ok {
		d.active--
		return nil, false, 0
	}
	return c, d.waiting.Len() > 0 && d.wakeLocked(), d.opens.take()
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

// load returns how many calls wait, and how many workers are busy.
func (d *dispatcher) load() (waiting, running int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waiting.Len(), d.active
}

// idleTime is how long a worker without work is kept, at least.
const idleTime = 10 * time.Second

// workers are the goroutines on which a node runs handlers. They are kept for the next call, of whichever session, because their stacks have grown to what
// handlers need.
type workers struct {
	mu     sync.Mutex
	idle   []*worker // guarded by mu, as all below; the last one is the warmest
	fewest int       // length of idle at its shortest since the last trim
	timer  *time.Timer
	ended  bool
}

// worker is one kept goroutine. It ends when its channel is closed, by trim or by end.
type worker struct {
	jobs    chan *dispatcher // holds at most one
	scratch scratch
}

// run lets a worker do d.work.
func (w *workers) run(d *dispatcher) {
	w.mu.Lock()
	n := len(w.idle)
	if n == 0 {
		w.mu.Unlock()
		go (&worker{jobs: make(chan *dispatcher, 1)}).loop(w, d)
		return
	}
	next := w.idle[n-1]
	w.idle[n-1] = nil
	w.idle = w.idle[:n-1]
	w.fewest = min(w.fewest, n-1)
	w.mu.Unlock()
	next.jobs <- d
}

func (k *worker) loop(w *workers, d *dispatcher) {
	for ok := true; ok; d, ok = <-k.jobs {
		d.work(&k.scratch)
		if !w.park(k) {
			return
		}
	}
}

// park makes k idle. It reports false if k is to end instead.
func (w *workers) park(k *worker) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	w.idle = append(w.idle, k)
	if w.timer == nil {
		w.fewest = 0
		w.timer = time.AfterFunc(idleTime, w.trim)
	}
	return true
}

// trim ends the workers that nobody needed since the last time. It runs from time to time while there are idle workers.
func (w *workers) trim() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.idle[:w.fewest] {
		close(k.jobs)
	}
	w.idle = append([]*worker(nil), w.idle[w.fewest:]...)
	w.fewest = len(w.idle)
	if len(w.idle) == 0 {
		w.timer = nil
		return
	}
	w.timer.Reset(idleTime)
}

// end lets all workers end, the busy ones when they are done.
func (w *workers) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for _, k := range w.idle {
		close(k.jobs)
	}
	w.idle = nil
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}
