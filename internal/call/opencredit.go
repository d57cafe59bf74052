package call

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec/message"
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
	gone    int32       // canceled waiters in waiting; guarded by mu, as all below
	mu      sync.Mutex
	limit   int64 // total granted
	drained bool  // the peer accepts no more calls, and no call waits
	// the peer supports metadata of calls; fixed, and here because it costs no memory beside
	// drained
	metadata bool
	keyless  bool                         // likewise: it accepts no idempotency keys
	waiting  *priority.Lines[*openWaiter] // nil until a call waits
}

// openWaiter is a call that waits.
type openWaiter struct {
	turn    chan struct{} // closed when it has credit, or is rejected
	cost    int64         // fixed
	gone    bool          // guarded by the lock of its openCredit
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
		o.waiting = new(priority.Lines[*openWaiter])
	}
	first, _, ok := o.waiting.Peek()
	if (!ok || first < p) && o.take(p, cost) {
		o.queued.Store(o.waiting.Len() > 0)
		return nil
	}
	w := &openWaiter{turn: make(chan struct{}), cost: cost}
	if o.drained {
		w.refuse()
		return w
	}
	o.waiting.Push(p, w)
	return w
}

func (w *openWaiter) refuse() {
	w.refused = true
	close(w.turn)
}

// drain rejects all waiting and all later calls: the peer accepts no more.
func (o *openCredit) drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drained = true
	for o.waiting != nil && o.waiting.Len() > 0 {
		_, w, _ := o.waiting.Peek()
		o.waiting.Pop()
		if !w.gone {
			w.refuse()
		}
	}
	o.gone = 0
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
	select {
	case <-w.turn:
		if !w.refused {
			o.left.Add(w.cost)
			o.wakeLocked()
		}
		return
	default:
	}
	w.gone = true
	if o.gone++; o.gone > leftBeforeCleaning && int(o.gone) > o.waiting.Len()/2 {
		o.waiting.Filter(func(w *openWaiter) bool { return !w.gone })
		o.gone = 0
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
	for o.waiting != nil {
		p, w, ok := o.waiting.Peek()
		switch {
		case !ok:
			o.queued.Store(false)
			return
		case w.gone:
			o.gone--
		case !o.take(p, w.cost):
			return
		default:
			close(w.turn)
		}
		o.waiting.Pop()
	}
}

// used returns the used part of the peer's budget, and the budget.
func (o *openCredit) used() (used, room int) {
	if o.room == 0 {
		return 0, 0
	}
	return int(o.room - o.spare - o.left.Load()), int(o.room)
}

// leftBeforeCleaning is the minimum number of entries that have left before a queue is cleaned.
const leftBeforeCleaning = 32
