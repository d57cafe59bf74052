package call

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/priority"
)

// openCredit is the sender's side of the budget for Opens: the cost of further Opens that the peer
// accepts. Calls without sufficient credit wait by priority, and among equals in order. The last
// eighth of the budget is reserved for calls with a priority above normal, so that an
// urgent call can leave although ordinary calls have used up the rest.
//
// While no call waits, a call takes its credit without a lock, which would be contended by a
// thousand callers. A waiter sets queued before it reads left, and a goroutine that adds to left
// reads queued afterwards: one of the two sees the other.
type openCredit struct {
	// cost of the Opens that may follow before the last eighth is used; negative while that is in
	// use
	left  atomic.Int64
	spare int64 // reserved for urgent calls; fixed, as room
	room  int64 // the peer's whole budget; 0: no limit

	queued  atomic.Bool // a call waits; written with mu held
	mu      sync.Mutex
	limit   int64 // total granted; guarded by mu, as all below
	drained bool  // the peer accepts no more calls, and no call waits
	// the peer supports metadata of calls; fixed, and here because it costs no memory beside
	// drained
	metadata bool
	keyless  bool        // likewise: it accepts no idempotency keys
	waiting  *flow.Queue // nil until a call waits
}

// openWaiter is a call that waits.
type openWaiter struct {
	flow.Waiter
	turn    chan struct{} // closed when it has credit, or is rejected
	refused bool          // the peer accepts no more calls; fixed once turn is closed
}

// endless is unlimited credit.
const endless = math.MaxInt64

// init prepares o for a peer with the budget room, 0 meaning no limit, and with largest as the cost
// of its largest Open.
func (o *openCredit) init(room, largest uint64) {
	o.room = int64(min(room, message.MaxPipe))
	o.limit, o.spare = o.room, max(0, min(o.room/8, o.room-int64(largest)))
	o.left.Store(o.limit - o.spare)
	if room == 0 {
		o.left.Store(endless)
	}
}

// reserve takes credit for cost, or returns a waiter.
func (o *openCredit) reserve(p priority.Priority, cost int64) *openWaiter {
	if o.room == 0 || !o.queued.Load() && o.take(p, cost) {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queued.Store(true)
	if o.waiting == nil {
		o.waiting = new(flow.Queue)
	}
	if o.waiting.Passes(p) && o.take(p, cost) {
		o.queued.Store(o.waiting.Len() > 0)
		return nil
	}
	w := &openWaiter{turn: make(chan struct{})}
	w.Waiter = flow.Waiter{Priority: p, Bytes: int(cost), Granted: func(ok bool) {
		w.refused = !ok
		close(w.turn)
	}}
	if o.drained {
		w.Granted(false)
	} else {
		o.waiting.Push(&w.Waiter)
	}
	return w
}

// drain rejects all waiting and all later calls: the peer accepts no more.
func (o *openCredit) drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drained = true
	for o.waiting != nil && o.waiting.Len() > 0 {
		w := o.waiting.First()
		o.waiting.Remove(w)
		w.Granted(false)
	}
}

// take takes credit for cost if there is enough for a call of this priority.
func (o *openCredit) take(p priority.Priority, cost int64) bool {
	var least int64
	if p > priority.Normal {
		least = -o.spare
	}
	for {
		left := o.left.Load()
		if left-cost < least {
			return false
		}
		if o.left.CompareAndSwap(left, left-cost) {
			return true
		}
	}
}

// abandon is called for a waiter that was canceled. Credit that it has got meanwhile goes to
// another waiter.
func (o *openCredit) abandon(w *openWaiter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.waiting.Remove(&w.Waiter) && !w.refused {
		o.left.Add(int64(w.Bytes))
	}
	o.wakeLocked() // it may have blocked other waiters
}

// giveBack returns the cost of an Open that was never sent.
func (o *openCredit) giveBack(cost int64) {
	if o.room == 0 {
		return
	}
	o.left.Add(cost)
	if o.queued.Load() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.wakeLocked()
	}
}

// grant applies the peer's Credit. A total below an earlier one has no effect.
func (o *openCredit) grant(total uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if more := int64(total) - o.limit; o.room > 0 && more > 0 {
		o.limit += more
		o.left.Add(more)
		o.wakeLocked()
	}
}

// wakeLocked gives credit to waiters, as far as there is enough.
func (o *openCredit) wakeLocked() {
	if o.waiting == nil {
		return
	}
	for w := o.waiting.First(); w != nil && o.take(w.Priority, int64(w.Bytes)); w = o.waiting.First() {
		o.waiting.Remove(w)
		w.Granted(true)
	}
	if o.waiting.Len() == 0 {
		o.queued.Store(false)
	}
}

// used returns the used part of the peer's budget, and the budget.
func (o *openCredit) used() (used, room int) {
	if o.room == 0 {
		return 0, 0
	}
	return int(o.room - o.spare - o.left.Load()), int(o.room)
}
