package natswire

import (
	"os"
	"sync"
	"time"
)

// condDeadline ends waits on a sync.Cond in time. The lock of the Cond guards it.
type condDeadline struct {
	timer  *time.Timer // runs until the deadline; nil without one
	passed bool
}

// setLocked replaces the deadline; the zero time stands for none. The caller holds the lock of
// changed. When the deadline has passed, the waiters on changed check errLocked again.
func (d *condDeadline) setLocked(t time.Time, changed *sync.Cond) {
	if d.timer != nil {
		d.timer.Stop()
	}
	d.timer, d.passed = nil, false
	if t.IsZero() {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(time.Until(t), func() {
		changed.L.Lock()
		defer changed.L.Unlock()
		if d.timer == timer { // it was not replaced meanwhile
			d.passed = true
			changed.Broadcast()
		}
	})
	d.timer = timer
}

// errLocked returns the error for a wait after the deadline, or nil.
func (d *condDeadline) errLocked() error {
	if d.passed {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// stopLocked ends the timer.
func (d *condDeadline) stopLocked() {
	if d.timer != nil {
		d.timer.Stop()
	}
}
