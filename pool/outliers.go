package pool

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque"
)

// outlierEjector decides whether a server gets no calls because too many calls in a row have
// failed, or were rejected or not answered.
//
//	serving --5 failures--> resting --time is up--> on trial --a call succeeds--> serving
//	                           ^                       |
//	                           +-----it fails, longer--+
type outlierEjector struct {
	failures atomic.Int32 // since the last good call
	busy     atomic.Bool  // resting or on trial; the fields below matter only then

	mu    sync.Mutex
	times int       // rests since it last served; guarded by mu, as all below
	until time.Time // end of the rest
	trial time.Time // start of the call of its trial; zero: not yet
}

const (
	// mostFailures is the number of failed calls in a row after which a server rests.
	mostFailures = 5

	firstRest, longestRest = time.Second, time.Minute

	// longestTrial is how long the call of a trial blocks other calls. A call that ends without a
	// result for the pool, such as a canceled one or a long stream, must not block them for ever.
	longestTrial = 10 * time.Second
)

// good records that the server answered a call.
func (r *outlierEjector) good() {
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

// fail records that a call failed, and reports whether the server rests from now on.
func (r *outlierEjector) fail(now time.Time) (begins bool) {
	if r.failures.Add(1) < mostFailures {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy.Load() && now.Before(r.until) {
		return false // the call began before the rest
	}
	r.busy.Store(true)
	r.until = now.Add(growing(r.times, firstRest, longestRest))
	r.trial = time.Time{}
	r.times++
	return true
}

// good reports whether err, of a call, shows that the server works: it has answered, possibly with
// an error of its own.
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

// failing reports whether err shows that the server is in a bad state, and not a problem of one
// call.
func failing(err error) bool {
	for _, bad := range []error{asterisque.ErrUnavailable, asterisque.ErrOverloaded, asterisque.ErrSessionClosed, asterisque.ErrStalled, asterisque.ErrHardLimit, asterisque.ErrProtocol} {
		if errors.Is(err, bad) {
			return true
		}
	}
	return false
}

// resting reports whether the server gets no calls now. It has no side effects.
func (r *outlierEjector) resting(now time.Time) bool {
	if !r.busy.Load() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.restingLocked(now)
}

func (r *outlierEjector) restingLocked(now time.Time) bool {
	return r.busy.Load() && (now.Before(r.until) || now.Before(r.trial.Add(longestTrial)))
}

// enter reports whether a call may use the server. A server on trial accepts only one call.
func (r *outlierEjector) enter(now time.Time) bool {
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

// rested returns the end of the server's rest, or the zero time if it does not rest.
func (r *outlierEjector) rested(now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.busy.Load() || !now.Before(r.until) {
		return time.Time{}
	}
	return r.until
}
