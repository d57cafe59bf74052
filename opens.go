package asterisque

import (
	"context"
	"sync"
	"sync/atomic"
)

// openCredit is the sender's side of the window for Opens: how many more calls the peer is ready to take.
type openCredit struct {
	limit atomic.Uint64 // total granted; 0: the peer has no such window
	sent  atomic.Uint64 // total used

	mu   sync.Mutex
	more chan struct{} // guarded by mu; closed when there is more; nil while nobody waits
}

// reserve uses one, or returns a channel that is closed when it is worth trying again.
func (o *openCredit) reserve() (more <-chan struct{}) {
	if o.use() {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.use() { // granted in the meantime
		return nil
	}
	if o.more == nil {
		o.more = make(chan struct{})
	}
	return o.more
}

func (o *openCredit) use() bool {
	for {
		limit, sent := o.limit.Load(), o.sent.Load()
		if limit > 0 && sent >= limit {
			return false
		}
		if o.sent.CompareAndSwap(sent, sent+1) {
			return true
		}
	}
}

// giveBack returns one whose Open was never sent.
func (o *openCredit) giveBack() {
	o.sent.Add(^uint64(0))
	o.wake()
}

// grant takes the peer's Credit. A total below an earlier one changes nothing.
func (o *openCredit) grant(total uint64) {
	if limit := o.limit.Load(); limit == 0 || total <= limit {
		return
	}
	o.limit.Store(total) // by the reader alone
	o.wake()
}

func (o *openCredit) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
}

// reserveOpen waits until a call with size bytes of parameters may be sent, and counts it. A nested one needs no window: the call that waits for it may keep that from moving.
func (s *Session) reserveOpen(ctx context.Context, size int, nested bool) *Abort {
	if nested {
		return s.reserve(ctx, size)
	}
	for more := s.opens.reserve(); more != nil; more = s.opens.reserve() {
		select {
		case <-more:
		case <-ctx.Done():
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
