package flow

import (
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/priority"
)

// Credit is room that a sender takes and gives back: that of the peer for calls or for the first
// Blocks of streams, or the outstanding calls of a function. Requests wait by priority. A part of
// the room may be reserved for priorities above normal.
//
// While no request waits, one takes its room without a lock, which would be contended by a thousand
// callers. A waiter sets queued before it reads left, and a goroutine that adds to left reads
// queued afterwards: one of the two sees the other. A Credit is safe for concurrent use after Init.
// The zero Credit is unlimited.
type Credit struct {
	// free room besides the reserve; negative while that is in use
	left    atomic.Int64
	room    int64 // at the beginning; 0: no limit; fixed, as reserve
	reserve int64
	limit   atomic.Int64 // total granted: see Raise

	queued  atomic.Bool // a request waits; written with mu held
	closed  bool        // guarded by mu, as waiting
	mu      sync.Mutex
	waiting *Queue // nil until a request waits
}

// Init prepares c with room, of which the reserve is for priorities above normal. 0 is no limit.
func (c *Credit) Init(room, reserve int64) {
	c.room, c.reserve = room, reserve
	c.limit.Store(room)
	c.left.Store(room - reserve)
}

// Room returns the room at the beginning, 0 being unlimited.
func (c *Credit) Room() int64 { return c.room }

// TryAcquire takes n of the room for a request of normal priority, or returns false. It overtakes
// the requests that wait.
func (c *Credit) TryAcquire(n int64) bool { return c.take(priority.Normal, n) }

// Acquire takes n of the room and returns nil, or returns a Ticket. The caller waits for its Turn,
// or calls Leave. n is at most [math.MaxInt].
func (c *Credit) Acquire(p priority.Priority, n int64) *Ticket {
	if !c.queued.Load() && c.take(p, n) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queued.Store(true)
	if c.waiting == nil {
		c.waiting = new(Queue)
	}
	var t *Ticket
	if !c.waiting.passes(p) || !c.take(p, n) {
		t = NewTicket(p, int(n))
		if c.closed {
			t.Granted(false)
		} else {
			c.waiting.push(&t.Waiter)
		}
	}
	c.queued.Store(c.waiting.len > 0)
	return t
}

// take takes n of the room if there is enough for a request of this priority.
func (c *Credit) take(p priority.Priority, n int64) bool {
	if c.room == 0 {
		return true
	}
	var least int64
	if p > priority.Normal {
		least = -c.reserve
	}
	for {
		left := c.left.Load()
		if left-n < least {
			return false
		}
		if c.left.CompareAndSwap(left, left-n) {
			return true
		}
	}
}

// Leave ends the wait of t. Room that t has got meanwhile goes to another request.
func (c *Credit) Leave(t *Ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.waiting.remove(&t.Waiter) && !t.refused {
		c.left.Add(int64(t.Bytes))
	}
	c.grantLocked() // it may have blocked other requests
}

// Release adds n to the room.
func (c *Credit) Release(n int64) {
	if c.room == 0 {
		return
	}
	c.left.Add(n)
	if c.queued.Load() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.grantLocked()
	}
}

// Raise raises the total of all room since the beginning, as a peer grants it. A total below an
// earlier one has no effect.
func (c *Credit) Raise(total uint64) {
	for old := c.limit.Load(); int64(total) > old; old = c.limit.Load() {
		if c.limit.CompareAndSwap(old, int64(total)) {
			c.Release(int64(total) - old)
			return
		}
	}
}

// grantLocked gives room to waiting requests, as far as there is enough.
func (c *Credit) grantLocked() {
	if c.waiting == nil {
		return
	}
	Grant(c.waiting.grant(nil, func(w *Waiter) bool { return c.take(w.Priority, int64(w.Bytes)) }))
	c.queued.Store(c.waiting.len > 0)
}

// Close refuses the waiting requests, and all later ones that would have to wait.
func (c *Credit) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.waiting == nil {
		return
	}
	for _, w := range c.waiting.grant(nil, func(*Waiter) bool { return true }) {
		w.Granted(false)
	}
}

// Left returns the free room, the reserve included.
func (c *Credit) Left() int64 { return c.left.Load() + c.reserve }

// Used returns the part in use of the room at the beginning.
func (c *Credit) Used() int64 { return c.room - c.Left() }

// Len returns the number of waiting requests.
func (c *Credit) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		return 0
	}
	return c.waiting.len
}
