package dispatch

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/internal/flow"
)

// idleTime is the minimum time for which an idle worker is kept.
const idleTime = 10 * time.Second

// mostIdle bounds the idle workers that are kept.
const mostIdle = 1024

// workers are the goroutines on which a node runs handlers. They are kept for later calls, of any
// session, because their stacks have grown to the needs of handlers. If the node has a limit for
// them, owners take turns, and so do the sessions of each.
type workers struct {
	limit   int         // fixed before the first call; 0: none
	crowded atomic.Bool // work sources are in the queue; written with mu held

	mu sync.Mutex
	// guarded by mu, as all below; running work sources, without lent ones
	busy   int
	lent   int                   // running lent work sources
	most   int                   // maximum of both together
	queue  fairQueue[workSource] // work sources that wait for the limit
	idle   []*worker             // the last one is the warmest
	fewest int                   // minimum length of idle since the last trim
	timer  *time.Timer
	ended  bool
}

// worker is one kept goroutine. It ends when its channel is closed, by trim or by end.
type worker struct {
	// holds at most one; made when the worker is idle for the first time
	next      chan workSource
	job       Job // the call that runs, or the last one; nil while the worker is idle
	workspace Workspace
}

// workSource is the work of a worker: the calls that wait at a dispatcher, or the one call to which
// the worker is lent. The zero workSource is none.
type workSource struct {
	d   *Dispatcher
	one Job // nil unless the worker is lent: beyond the limit, because a running call waits for it
}

func (s workSource) lent() bool { return s.one != nil }

// run runs the calls of s on k. It returns true when k has to give way to other work sources first;
// crowded reports that they wait.
func (s workSource) run(k *worker, crowded *atomic.Bool) (again bool) {
	if s.lent() {
		k.runLent(s.d, s.one)
		return false
	}
	return s.d.work(k, crowded)
}

// workerLost is called when a call has ended the goroutine of the worker that ran it. It reports
// whether another worker is to repeat s.
func (s workSource) workerLost(j Job) (again bool) {
	s.d.done(j)
	return !s.lent() && s.d.standBack()
}

// start runs s on a worker as soon as the limit allows. It does nothing for no s.
func (w *workers) start(s workSource) {
	if s.d == nil {
		return
	}
	if k, ok := w.take(s); !ok {
		return // s waits
	} else if k != nil {
		k.next <- s
	} else {
		go new(worker).loop(w, s) // ends as documented
	}
}

// take returns a worker for s, or nil if a new one is to be started. It returns false if s waits
// for the limit.
func (w *workers) take(s workSource) (k *worker, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case s.lent():
		w.lent++
	case w.limit > 0 && w.busy >= w.limit:
		w.queue.push(s.d.Owner(), s)
		w.crowded.Store(true)
		return nil, false
	default:
		w.busy++
	}
	w.most = max(w.most, w.busy+w.lent)
	n := len(w.idle)
	if n == 0 {
		return nil, true
	}
	k = w.idle[n-1]
	w.idle[n-1] = nil
	w.idle = w.idle[:n-1]
	w.fewest = min(w.fewest, n-1)
	return k, true
}

// loop runs one work source after the other.
func (k *worker) loop(w *workers, s workSource) {
	defer k.goroutineEnds(w)
	for ok := true; ok; {
		again := s.run(k, &w.crowded)
		s, ok = k.following(w, s, again)
	}
}

// runLent runs one call of d on k, which is lent.
func (k *worker) runLent(d *Dispatcher, j Job) {
	var h flow.Window
	t := j.Task()
	if t.Blocks && d.windows != nil {
		d.windows.Lend(&h)
	}
	if !t.Nested { // the worker is lent, but the Open was counted
		d.Return(j.Cost(), false)
	}
	k.job = j
	j.Begin(h)
	j.Run(&k.workspace)
	d.done(j)
}

// following ends s, waits for the next work source, and returns it. It returns false if the worker
// is to end.
func (k *worker) following(w *workers, s workSource, again bool) (next workSource, ok bool) {
	k.job = nil // would keep its session in memory
	next, ok, end := w.next(k, s, again)
	if !ok && !end {
		next, ok = <-k.next
	}
	return next, ok
}

// goroutineEnds is called when the goroutine of k ends. If a call has ended it, another goroutine
// takes over.
func (k *worker) goroutineEnds(w *workers) {
	j := k.job
	if j == nil {
		return
	}
	s := workSource{d: j.Dispatcher()}
	if j.Task().state == lent { // which does not change until the call is done
		s.one = j
	}
	again := s.workerLost(j)
	k.workspace = Workspace{}
	go func() { // as loop
		if next, ok := k.following(w, s, again); ok {
			k.loop(w, next)
		}
	}()
}

// next ends s, or queues it if it is to be repeated, and returns the next work source. If ok is
// false there is none, and k has become idle, or is to end.
func (w *workers) next(k *worker, s workSource, again bool) (next workSource, ok, end bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if again {
		w.queue.push(s.d.Owner(), s)
	}
	switch {
	case s.lent():
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
	if k.next == nil {
		k.next = make(chan workSource, 1)
	}
	w.idle = append(w.idle, k)
	if w.timer == nil {
		w.fewest = 0
		w.timer = time.AfterFunc(idleTime, w.trim)
	}
	return next, false, false
}

// trim ends the workers that were not needed since the last time. It runs periodically while there
// are idle workers.
func (w *workers) trim() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.idle[:w.fewest] {
		close(k.next)
	}
	w.idle = append([]*worker(nil), w.idle[w.fewest:]...)
	w.fewest = len(w.idle)
	if len(w.idle) == 0 {
		w.timer = nil
		return
	}
	w.timer.Reset(idleTime)
}

// end ends all workers, the busy ones after their calls.
func (w *workers) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for _, k := range w.idle {
		close(k.next)
	}
	w.idle, w.fewest = nil, 0 // also for a trim that is about to begin
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// WorkerStats counts the workers of a node.
type WorkerStats struct {
	Busy, Lent, Most, Idle int
	Waiting                int // work sources that wait for the limit
}

func (w *workers) crew() WorkerStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return WorkerStats{Busy: w.busy + w.lent, Lent: w.lent, Most: w.most, Idle: len(w.idle), Waiting: w.queue.len()}
}
