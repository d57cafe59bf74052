package flow

import (
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/priority"
)

// Queue is room that requests take, and for which they wait by priority, and among equals in the
// order of their arrival: no request overtakes one of its own priority or a higher one. A part of
// the room may be reserved for priorities above normal.
//
// While no request waits, one takes its room without a lock, which would be contended by a thousand
// callers. A waiter sets queued before it reads left, and a goroutine that adds to left reads
// queued afterwards: one of the two sees the other. A Queue is safe for concurrent use after Init.
type Queue struct {
	// free room besides the reserve; negative while that is in use
	left    atomic.Int64
	reserve int64 // fixed

	queued  atomic.Bool // a request waits; written with mu held
	closed  bool        // guarded by mu, as waiting
	mu      sync.Mutex
	waiting *waitList // nil until a request waits
}

// Ticket is a request that waits in a [Queue].
type Ticket struct {
	turn    chan struct{}
	waiter  Waiter
	refused bool
}

// Turn returns a channel that is closed when the request has its room, or never will: see Refused.
func (t *Ticket) Turn() <-chan struct{} { return t.turn }

// Refused reports, once the channel of Turn is closed, that the Queue was closed.
func (t *Ticket) Refused() bool { return t.refused }

// Init prepares q with room, of which the reserve is for priorities above normal.
func (q *Queue) Init(room, reserve int64) {
	q.reserve = reserve
	q.left.Store(room - reserve)
}

// Acquire takes n of the room and returns nil, or returns a Ticket. The caller waits for its Turn,
// or calls Leave. n is at most [math.MaxInt].
func (q *Queue) Acquire(p priority.Priority, n int64) *Ticket {
	if !q.queued.Load() && q.take(p, n) {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queued.Store(true)
	if q.waiting == nil {
		q.waiting = new(waitList)
	}
	if q.waiting.passes(p) && q.take(p, n) {
		q.queued.Store(q.waiting.len > 0)
		return nil
	}
	t := &Ticket{turn: make(chan struct{})}
	t.waiter = Waiter{Priority: p, Bytes: int(n), Granted: func(ok bool) {
		t.refused = !ok
		close(t.turn)
	}}
	if q.closed {
		t.waiter.Granted(false)
	} else {
		q.waiting.push(&t.waiter)
	}
	return t
}

// take takes n of the room if there is enough for a request of this priority.
func (q *Queue) take(p priority.Priority, n int64) bool {
	var least int64
	if p > priority.Normal {
		least = -q.reserve
	}
	for {
		left := q.left.Load()
		if left-n < least {
			return false
		}
		if q.left.CompareAndSwap(left, left-n) {
			return true
		}
	}
}

// Leave ends the wait of t. Room that it has got meanwhile goes to another request.
func (q *Queue) Leave(t *Ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.waiting.remove(&t.waiter) && !t.refused {
		q.left.Add(int64(t.waiter.Bytes))
	}
	q.grantLocked() // it may have blocked other requests
}

// Release adds n to the room: what a request has taken, or more room.
func (q *Queue) Release(n int64) {
	q.left.Add(n)
	if q.queued.Load() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.grantLocked()
	}
}

// grantLocked gives room to waiting requests, as far as there is enough.
func (q *Queue) grantLocked() {
	if q.waiting == nil {
		return
	}
	for w := q.waiting.first(); w != nil && q.take(w.Priority, int64(w.Bytes)); w = q.waiting.first() {
		q.waiting.remove(w)
		w.Granted(true)
	}
	if q.waiting.len == 0 {
		q.queued.Store(false)
	}
}

// Close refuses the waiting requests, and all later ones that would have to wait.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for q.waiting != nil && q.waiting.len > 0 {
		w := q.waiting.first()
		q.waiting.remove(w)
		w.Granted(false)
	}
}

// Left returns the free room, the reserve included.
func (q *Queue) Left() int64 { return q.left.Load() + q.reserve }

// Len returns the number of waiting requests.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		return 0
	}
	return q.waiting.len
}
