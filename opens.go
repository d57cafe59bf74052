package asterisque

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/priority"
)

// openCredit is the sender's side of the window for Opens: how many more calls the peer is ready to take. Calls that find none wait by priority, and among equals in their order. The last eighth of
// the window is kept for calls with a priority above normal, so that these need not wait for the peer as well.
//
// While nobody waits, a call takes what it needs without a lock, which a thousand callers would pass around. Whoever takes part in waiting sets queued before it looks at left, and whoever
// adds to left looks at queued after that: one of the two sees the other.
type openCredit struct {
	left   atomic.Int64 // Opens that may follow before the last eighth is touched; negative while that is in use
	queued atomic.Bool  // somebody waits; written with mu held
	spare  int64        // what is kept for urgent calls; fixed

	mu      sync.Mutex
	limit   int64 // guarded by mu, as all below; total granted; 0: the peer has no such window
	waiting priority.Lines[*openWaiter]
	gone    int // of waiting, how many have given up
}

// openWaiter is a call that waits.
type openWaiter struct {
	turn chan struct{} // closed when it has credit
	gone bool          // guarded by the lock of its openCredit
}

// endless is credit that lasts for all times.
const endless = math.MaxInt64

func (o *openCredit) init(window uint64) {
	o.limit, o.spare = int64(window), int64(window/8)
	o.left.Store(o.limit - o.spare)
	if window == 0 {
		o.left.Store(endless)
	}
}

// reserve uses one, or returns a place to wait at.
func (o *openCredit) reserve(p priority.Priority) *openWaiter {
	if !o.queued.Load() && o.take(p) {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queued.Store(true)
	if o.take(p) { // nobody who waits has a better claim: all would have got it
		o.queued.Store(o.waiting.Len() > 0)
		return nil
	}
	w := &openWaiter{turn: make(chan struct{})}
	o.waiting.Push(p, w)
	return w
}

// take uses one if there is one for a call of this priority.
func (o *openCredit) take(p priority.Priority) bool {
	var least int64
	if p > priority.Normal {
		least = -o.spare
	}
	for {
		left := o.left.Load()
		if left <= least {
			return false
		}
		if o.left.CompareAndSwap(left, left-1) {
			return true
		}
	}
}

// abandon is called for a waiter that waits no longer. What it may have got meanwhile goes to another one.
func (o *openCredit) abandon(w *openWaiter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-w.turn:
		o.left.Add(1)
		o.wakeLocked()
		return
	default:
	}
	w.gone = true
	if o.gone++; o.gone > tolerated && o.gone > o.waiting.Len()/2 {
		o.waiting.Filter(func(w *openWaiter) bool { return !w.gone })
		o.gone = 0
	}
}

// giveBack returns one whose Open was never sent.
func (o *openCredit) giveBack() {
	o.left.Add(1)
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
	if more := int64(total) - o.limit; o.limit > 0 && more > 0 {
		o.limit += more
		o.left.Add(more)
		o.wakeLocked()
	}
}

// wakeLocked gives credit to those who wait, as far as it goes.
func (o *openCredit) wakeLocked() {
	for {
		p, w, ok := o.waiting.Peek()
		switch {
		case !ok:
			o.queued.Store(false)
			return
		case w.gone:
			o.gone--
		case !o.take(p):
			return
		default:
			close(w.turn)
		}
		o.waiting.Pop()
	}
}

// used returns how many Opens have been sent.
func (o *openCredit) used() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.limit == 0 {
		return uint64(endless - o.left.Load())
	}
	return uint64(o.limit - o.spare - o.left.Load())
}

// reserveOpen waits until a call with size bytes of parameters may be sent, and counts it. A nested one needs no window: the call that waits for it may keep that from moving.
func (s *Session) reserveOpen(ctx context.Context, size int, p priority.Priority, nested bool) *Abort {
	if nested {
		return s.reserve(ctx, size)
	}
	if w := s.opens.reserve(p); w != nil {
		select {
		case <-w.turn:
		case <-ctx.Done():
			s.opens.abandon(w)
			return neverSent(contextError(ctx))
		case <-s.ctx.Done():
			return neverSent(s.cause())
		}
	}
	a := s.reserve(ctx, size)
	if a != nil {
		s.opens.giveBack()
	}
	return a
}

// openWindow is the receiver's side. It is guarded by the lock of its dispatcher.
type openWindow struct {
	size     uint64 // 0: no window; fixed
	received uint64
	taken    uint64 // by a worker, or refused
	granted  uint64 // as the peer knows it
}

// arrive counts an Open and reports false if the peer was not allowed to send it.
func (w *openWindow) arrive() bool {
	w.received++
	return w.size == 0 || w.received <= w.granted
}

// take counts an Open as taken. It returns the total to be granted, or 0 as long as it is not worth a message. A nested one needs no window and is not counted.
func (w *openWindow) take(nested bool) uint64 {
	if nested {
		return 0
	}
	w.taken++
	total := w.taken + w.size
	if w.size == 0 || total < w.granted+(w.size+3)/4 {
		return 0
	}
	w.granted = total
	return total
}
