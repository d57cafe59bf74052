package tunnel

import (
	"context"
	"os"
	"sync"
	"time"
)

// connDeadline is that of one direction of a Conn. It bounds calls that begin after it was set, and
// those that block already.
type connDeadline struct {
	mu    sync.Mutex
	bound *deadlineContext // guarded by mu, as all below; of calls that begin now
	timer *time.Timer      // ends bound; nil: none
	over  bool             // the direction has ended, and bound with it
}

// current returns the bound of a call that begins now.
func (d *connDeadline) current() *deadlineContext {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bound
}

// set makes t the deadline, as long as the direction has not ended. The zero time is none.
func (d *connDeadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return
	}
	d.stopLocked()
	if d.bound.cause() != nil {
		d.bound = newBound() // calls that the old one has ended stay ended
	}
	if t.IsZero() {
		return
	}
	if left := time.Until(t); left > 0 {
		d.startLocked(left)
	} else {
		d.bound.end(os.ErrDeadlineExceeded)
	}
}

// startLocked ends the bound after left, unless the timer is stopped before.
func (d *connDeadline) startLocked(left time.Duration) {
	var timer *time.Timer
	timer = time.AfterFunc(left, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.timer == timer { // otherwise Stop was too late
			d.timer = nil
			d.bound.end(os.ErrDeadlineExceeded)
		}
	})
	d.timer = timer
}

// stopLocked stops the timer, if there is one.
func (d *connDeadline) stopLocked() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// end ends all calls of the direction for good, blocked and later ones, with cause. The cause of
// the last end counts.
func (d *connDeadline) end(cause error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	d.stopLocked()
	if d.bound.cause() != nil {
		d.bound = newBound()
	}
	d.bound.end(cause)
}

// deadlineContext is the context of calls. It ends when their deadline passes, which may move until
// then, and when their direction ends.
type deadlineContext struct {
	done chan struct{}
	why  error // fixed when done is closed
}

func newBound() *deadlineContext { return &deadlineContext{done: make(chan struct{})} }

// ended is an ended bound, for calls that do not block.
var ended = func() *deadlineContext {
	b := newBound()
	b.end(os.ErrDeadlineExceeded)
	return b
}()

// end ends b, which has not ended, with cause. Its deadline guards it.
func (b *deadlineContext) end(cause error) {
	b.why = cause
	close(b.done)
}

// cause returns the reason of the end of b, or nil.
func (b *deadlineContext) cause() error {
	select {
	case <-b.done:
		return b.why
	default:
		return nil
	}
}

// Done implements context.Context.
func (b *deadlineContext) Done() <-chan struct{} { return b.done }

// Err implements context.Context.
func (b *deadlineContext) Err() error {
	if b.cause() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// Deadline implements context.Context.
func (*deadlineContext) Deadline() (at time.Time, ok bool) { return at, false }

// Value implements context.Context.
func (*deadlineContext) Value(any) any { return nil }
