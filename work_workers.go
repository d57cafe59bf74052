package asterisque

import (
	"sync"
	"sync/atomic"
	"time"
)

// idleTime is how long a worker without work is kept, at least.
const idleTime = 10 * time.Second

// mostIdle is how many workers without work are kept.
const mostIdle = 1024

// workers are the goroutines on which a node runs handlers. They are kept for the next call, of
// whichever session, because their stacks have grown to what handlers need. If the node has a limit
// for them, owners have their turn one after the other, and so have the sessions of each.
type workers struct {
	limit   int         // fixed before the first call; 0: none
	crowded atomic.Bool // jobs are in the queue; written with mu held

	mu     sync.Mutex
	busy   int        // guarded by mu, as all below; jobs at work, lent ones apart
	lent   int        // those
	most   int        // both together at their highest
	queue  turns[job] // jobs that wait for the limit
	idle   []*worker  // the last one is the warmest
	fewest int        // length of idle at its shortest since the last trim
	timer  *time.Timer
	ended  bool
}

// job is to run the calls that wait at a dispatcher.
type job struct {
	d    *dispatcher
	call *incoming // only that, beyond the limits; nil: any
}

// worker is one kept goroutine. It ends when its channel is closed, by trim or by end.
type worker struct {
	jobs    chan job // holds at most one; made when the worker is idle for the first time
	scratch scratch
}

// start lets a worker do j if wake is true, as soon as the limit allows. A worker that is lent to
// one call needs no room: it is what a worker at its work waits for.
func (w *workers) start(j job, wake bool) {
	if !wake {
		return
	}
	w.mu.Lock()
	if j.call == nil {
		if w.limit > 0 && w.busy >= w.limit {
			w.queue.push(j.d.s.owner, j)
			w.crowded.Store(true)
			w.mu.Unlock()
			return
		}
		w.busy++
	} else {
		w.lent++
	}
	w.most = max(w.most, w.busy+w.lent)
	w.startLocked(j)
}

// startLocked starts j and unlocks.
func (w *workers) startLocked(j job) {
	n := len(w.idle)
	if n == 0 {
		w.mu.Unlock()
		go new(worker).loop(w, j)
		return
	}
	next := w.idle[n-1]
	w.idle[n-1] = nil
	w.idle = w.idle[:n-1]
	w.fewest = min(w.fewest, n-1)
	w.mu.Unlock()
	next.jobs <- j
}

// loop does one job after the other.
func (k *worker) loop(w *workers, j job) {
	defer k.ended(w)
	for ok := true; ok; {
		again := j.d.work(&k.scratch, j, &w.crowded)
		j, ok = k.following(w, j, again)
	}
}

// following ends j, and returns the next job, for which it waits. It reports false if the worker is
// to end.
func (k *worker) following(w *workers, j job, again bool) (next job, ok bool) {
	k.scratch.call = nil // which would keep its session
	next, ok, end := w.next(k, j, again)
	if !ok && !end {
		next, ok = <-k.jobs
	}
	return next, ok
}

// ended is called when the goroutine of k ends. If a call has ended it, another one goes on.
func (k *worker) ended(w *workers) {
	c := k.scratch.call
	if c == nil {
		return
	}
	j := job{d: &c.s.calls}
	if k.scratch.lent {
		j.call = c
	}
	again := j.d.lost(&k.scratch)
	k.scratch = scratch{}
	go func() { // as loop
		if next, ok := k.following(w, j, again); ok {
			k.loop(w, next)
		}
	}()
}

// next ends j, or lets it wait if it is to go on, and returns the job whose turn it is. If ok is
// false there is none, and k has become idle, or is to end.
func (w *workers) next(k *worker, j job, again bool) (next job, ok, end bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if again {
		w.queue.push(j.d.s.owner, j)
	}
	switch {
	case j.call != nil:
		w.lent--
	case w.queue.len() > 0:
		next = w.queue.pop()
		w.crowded.Store(w.queue.len() > 0)
		return next, true, false
	default:
		w.busy--
	}
	if w.ended || len(w.idle) >= mostIdle {
		return next, false, true
	}
	if k.jobs == nil {
		k.jobs = make(chan job, 1)
	}
	w.idle = append(w.idle, k)
	if w.timer == nil {
		w.fewest = 0
		w.timer = time.AfterFunc(idleTime, w.trim)
	}
	return next, false, false
}

// trim ends the workers that nobody needed since the last time. It runs from time to time while
// there are idle workers.
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
	w.idle, w.fewest = nil, 0 // also for a trim that is about to begin
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// load fills in what the statistics want to know.
func (w *workers) load(st *NodeStats) {
	w.mu.Lock()
	defer w.mu.Unlock()
	st.Busy, st.Lent, st.MostBusy, st.IdleWorkers, st.Crowded = w.busy+w.lent, w.lent, w.most, len(w.idle), w.queue.len()
}
