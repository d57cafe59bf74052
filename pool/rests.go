package pool

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque"
)

// rests decides when a server gets no calls because it has failed, refused or not answered too
// many.
//
//	serving --5 failures--> resting --time is up--> on trial --a call succeeds--> serving
//	                           ^                       |
//	                           +-----it fails, longer--+
type rests struct {
	failures atomic.Int32 // since the last call that was good
	busy     atomic.Bool  // it rests, or is on trial; what follows matters only then

	mu    sync.Mutex
	times int       // that it has rested since it last served; guarded by mu, as all below
	until time.Time // it rests
	trial time.Time // when the one call of its trial has begun; zero: not yet
}

const (
	// mostFailures is how many calls fail one after the other before a server rests.
	mostFailures = 5

	firstRest, longestRest = time.Second, time.Minute

	// longestTrial is how long the call of a trial keeps others away. A call that ends without
	// telling anything, such as one that is canceled, or a long stream, must not do so for ever.
	longestTrial = 10 * time.Second
)

// good notes that a call was answered.
func (r *rests) good() {
	if r.failures.Load() != 0 {
		r.failures.Store(0)
	}
	if r.busy.Load() {
		r.mu.Lock()
		r.busy.Store(false)
		r.times = 0
		r.mu.Unlock()
	}
}

// fail notes that a call failed, and reports whether the server rests from now on.
func (r *rests) fail(now time.Time) (begins bool) {
	if r.failures.Add(1) < mostFailures {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy.Load() && now.Before(r.until) {
		return false // a call of before
	}
	r.busy.Store(true)
	r.until = now.Add(growing(r.times, firstRest, longestRest))
	r.trial = time.Time{}
	r.times++
	return true
}

// good reports whether err, of a call, says that the server does its work: it has answered, be it
// with an error of its own.
func good(err error) bool {
	if err == nil {
		return true
	}
	var a *asterisque.Abort
	if !errors.As(err, &a) || !a.Remote || asterisque.Repeatable(err) || failing(err) {
		return false
	}
	return !errors.Is(err, asterisque.ErrCanceled) && !errors.Is(err, asterisque.ErrExpired)
}

// failing reports whether err says that the server is in a bad state, rather than what it thinks of
// one call.
func failing(err error) bool {
	for _, bad := range []error{asterisque.ErrUnavailable, asterisque.ErrOverloaded, asterisque.ErrSessionClosed, asterisque.ErrStalled, asterisque.ErrHardLimit, asterisque.ErrProtocol} {
		if errors.Is(err, bad) {
			return true
		}
	}
	return false
}

// resting reports whether the server gets no calls now. It changes nothing.
func (r *rests) resting(now time.Time) bool {
	if !r.busy.Load() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.restingLocked(now)
}

func (r *rests) restingLocked(now time.Time) bool {
	return r.busy.Load() && (now.Before(r.until) || now.Before(r.trial.Add(longestTrial)))
}

// enter reports whether a call may go to the server, which if it is on trial only one may.
func (r *rests) enter(now time.Time) bool {
	if !r.busy.Load() {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.restingLocked(now) {
		return false
	}
	if r.busy.Load() {
		r.trial = now
	}
	return true
}

// rested returns until when the server rests, and the zero time if it does not.
func (r *rests) rested(now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.busy.Load() || !now.Before(r.until) {
		return time.Time{}
	}
	return r.until
}
