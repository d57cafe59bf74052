package asterisque

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/priority"
)

// openCredit is the sender's side of the room for Opens: what more of them the peer is ready to
// take, by their cost. Calls that find too little wait by priority, and among equals in their
// order. The last eighth of the room is kept for calls with a priority above normal, so that these
// need not wait for the peer as well.
//
// While nobody waits, a call takes what it needs without a lock, which a thousand callers would
// pass around. Whoever takes part in waiting sets queued before it looks at left, and whoever adds
// to left looks at queued after that: one of the two sees the other.
type openCredit struct {
	// cost of the Opens that may follow before the last eighth is touched; negative while that is
	// in use
	left  atomic.Int64
	spare int64 // what is kept for urgent calls; fixed, as room
	room  int64 // all that the peer has; 0: any number

	queued  atomic.Bool // somebody waits; written with mu held
	gone    int32       // of waiting, how many have given up; guarded by mu, as all below
	mu      sync.Mutex
	limit   int64 // total granted
	drained bool  // the peer takes no calls any more, and nobody waits
	// the peer knows the metadata of calls; fixed, and here because it costs no memory beside
	// drained
	metadata bool
	keyless  bool                         // likewise: it takes no idempotency keys
	waiting  *priority.Lines[*openWaiter] // nil until somebody waits
}

// openWaiter is a call that waits.
type openWaiter struct {
	turn    chan struct{} // closed when it has credit, or is refused
	cost    int64         // fixed
	gone    bool          // guarded by the lock of its openCredit
	refused bool          // the peer takes no calls any more; fixed once turn is closed
}

// endless is credit that lasts for all times.
const endless = math.MaxInt64

// init prepares o for a peer that has so much room, 0 being any, and whose largest Open costs
// largest.
func (o *openCredit) init(room, largest uint64) {
	o.room = int64(min(room, message.MaxPipe))
	o.limit, o.spare = o.room, max(0, min(o.room/8, o.room-int64(largest)))
	o.left.Store(o.limit - o.spare)
	if room == 0 {
		o.left.Store(endless)
	}
}

// reserve uses cost, or returns a place to wait at.
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

// drain refuses all who wait, and all who would: the peer takes no calls any more.
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

// take uses cost if there is so much for a call of this priority.
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

// abandon is called for a waiter that waits no longer. What it may have got meanwhile goes to
// another one.
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
	if o.gone++; o.gone > tolerated && int(o.gone) > o.waiting.Len()/2 {
		o.waiting.Filter(func(w *openWaiter) bool { return !w.gone })
		o.gone = 0
	}
	o.wakeLocked() // it may have kept others waiting
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

// grant takes the peer's Credit. A total below an earlier one changes nothing.
func (o *openCredit) grant(total uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if more := int64(total) - o.limit; o.room > 0 && more > 0 {
		o.limit += more
		o.left.Add(more)
		o.wakeLocked()
	}
}

// wakeLocked gives credit to those who wait, as far as it goes.
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

// used returns what of the peer's room is used, and how large that is.
func (o *openCredit) used() (used, room int) {
	if o.room == 0 {
		return 0, 0
	}
	return int(o.room - o.spare - o.left.Load()), int(o.room)
}
