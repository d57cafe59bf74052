package wait

import (
	"context"
	"sync"
	"time"
)

// parts is the number of parts of a Timer's wait.
const parts = 8

// Late reports whether a timer for d is so late, with the time passed, that this process cannot
// have run meanwhile: the process or its machine was stopped, or other processes had the processor.
func Late(passed, d time.Duration) bool { return passed > d+d/2 }

// Looks decides which looks are too late to judge a peer. Its owner guards it.
type Looks struct {
	late int // in a row
}

// Late is the function Late for the next look. At most parts looks in a row are late: otherwise a
// process that never runs in time would never give up a peer.
func (l *Looks) Late(passed, d time.Duration) bool {
	if !Late(passed, d) {
		l.late = 0
		return false
	}
	l.late++
	return l.late <= parts
}

// Timer calls a function when this process has run for a given time. It is for timeouts of a peer:
// frames that arrive while the process does not run are read before the timeout.
type Timer struct {
	f func()

	mu    sync.Mutex
	timer *time.Timer   // of the present part; guarded by mu, as all below
	left  time.Duration // time left, with the present part
	part  time.Duration
	since time.Time // when the present part began
	looks Looks
	over  bool
}

// AfterFunc calls f on a goroutine of its own when this process has run for d.
func AfterFunc(d time.Duration, f func()) *Timer {
	t := &Timer{f: f, left: d, part: d/parts + 1}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waitLocked()
	return t
}

// waitLocked waits for the next part.
func (t *Timer) waitLocked() {
	t.since = time.Now()
	if d := min(t.part, t.left); t.timer == nil {
		t.timer = time.AfterFunc(d, t.look)
	} else {
		t.timer.Reset(d)
	}
}

// look is called at the end of a part. A part counts with its planned duration at most. A late part
// is never the last one.
func (t *Timer) look() {
	if t.next() {
		t.f()
	}
}

func (t *Timer) next() (over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return false
	}
	d := min(t.part, t.left)
	t.left -= d
	if t.left <= 0 && t.looks.Late(time.Since(t.since), d) {
		t.left = t.part
	}
	if t.left <= 0 {
		t.over = true
		return true
	}
	t.waitLocked()
	return false
}

// Stop prevents the call. It returns false if the call has begun, or was prevented before.
func (t *Timer) Stop() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return false
	}
	t.over = true
	t.timer.Stop()
	return true
}

// WithTimeout is [context.WithTimeoutCause] with a [Timer]. After the timeout, the error of the
// context is [context.DeadlineExceeded], and that of derived contexts is [context.Canceled] with
// the same cause. Its deadline is that of a process that always runs.
func WithTimeout(parent context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(parent)
	ctx := &timerContext{inner, time.Now().Add(d), cause}
	if until, ok := parent.Deadline(); ok && until.Before(ctx.until) {
		ctx.until = until
	}
	timer := AfterFunc(d, func() { cancel(cause) })
	return ctx, func() { timer.Stop(); cancel(nil) }
}

// timerContext is the context of WithTimeout.
type timerContext struct {
	context.Context
	until time.Time
	cause error // at the timeout
}

func (c *timerContext) Deadline() (time.Time, bool) { return c.until, true }

func (c *timerContext) Err() error {
	err := c.Context.Err()
	if err != nil && context.Cause(c.Context) == c.cause {
		return context.DeadlineExceeded
	}
	return err
}
