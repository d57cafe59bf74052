package natstest

import (
	"sync"
	"time"
	_ "unsafe" // for linkname
)

// natsTimers is the pool of timers of package nats. The pool crosses bubbles, and a timer of a
// bubble that is reset outside ends the program. So this pool makes all timers outside of bubbles.
// Such a timer never fires within a bubble: tests wait for NATS with a context.
//
//go:linkname natsTimers github.com/nats-io/nats%2ego.globalTimerPool
var natsTimers struct{ pool sync.Pool }

func init() { natsTimers.pool.New = outer.timer }

// outer makes timers outside of all bubbles.
var outer timers

type timers struct {
	mu      sync.Mutex
	bubbles int // number of bubbles; guarded by mu, as all below
	ask     chan struct{}
	made    chan *time.Timer
}

// begin is called outside, before a bubble begins.
func (ts *timers) begin() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.bubbles++; ts.bubbles > 1 {
		return
	}
	ask, made := make(chan struct{}), make(chan *time.Timer)
	ts.ask, ts.made = ask, made
	go func() { // ends with the last bubble
		for range ask {
			made <- stoppedTimer()
		}
	}()
}

// end is called outside, after a bubble has ended.
func (ts *timers) end() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.bubbles--; ts.bubbles == 0 {
		close(ts.ask)
	}
}

// timer returns a new one. It may be called in a bubble.
func (ts *timers) timer() any {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.bubbles == 0 {
		return stoppedTimer()
	}
	ts.ask <- struct{}{}
	return <-ts.made
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}
