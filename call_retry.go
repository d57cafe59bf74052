package asterisque

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Retry makes calls again that failed because a side was overloaded or going away, and that
// certainly did not run (see [Repeatable]). Between two attempts it waits: twice as long each time,
// by chance up to a half less so that callers do not come back all at once, and what the overloaded
// side advised besides ([RetryAfter]), but never longer than Most. The zero Retry is ready to use;
// it is safe for concurrent use, and meant to be shared.
type Retry struct {
	Attempts int           // at most, the first one included; 0 is 4
	First    time.Duration // the wait before the second attempt; 0 is 50 ms
	Most     time.Duration // the longest wait, whatever the overloaded side advised; 0 is 5 s
	Budget   *RetryBudget  // bounds the share of repeated calls; nil is no bound
}

// Do calls call until it succeeds, fails in a way that repeating does not mend, or is not to be
// repeated any more, and returns its last error. The waits end with ctx; then the error is still
// that of the last call, which says more.
func (r *Retry) Do(ctx context.Context, call func(ctx context.Context) error) error {
	attempts := r.Attempts
	if attempts < 1 {
		attempts = 4
	}
	back := backoff{first: r.First, most: r.Most}
	r.Budget.Earn()
	for n := 1; ; n++ {
		err := call(ctx)
		if err == nil || n >= attempts || !worthRetrying(err) || !r.Budget.Spend() {
			return err
		}
		advice, _ := RetryAfter(err)
		if !sleep(ctx, min(advice+back.next(), back.longest())) {
			return err
		}
	}
}

func worthRetrying(err error) bool {
	return Repeatable(err) && (errors.Is(err, ErrOverloaded) || errors.Is(err, ErrUnavailable))
}

// sleep waits, and reports false if ctx ended, or would end, before d is over.
func sleep(ctx context.Context, d time.Duration) bool {
	if at, ok := ctx.Deadline(); ok && time.Until(at) <= d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// RetryBudget bounds which part of all calls may be repetitions, so that a peer which is overloaded
// is not given still more to do. It is safe for concurrent use.
type RetryBudget struct {
	share, most float64 // fixed

	full atomic.Bool // saved is most: many earn, and few spend

	mu    sync.Mutex
	saved float64 // guarded by mu: how many repetitions are left
}

// NewRetryBudget returns a budget that allows share repetitions for each call, 0.1 being one for
// ten calls, and saves up to reserve of them, with which it begins.
func NewRetryBudget(share float64, reserve int) *RetryBudget {
	return &RetryBudget{share: share, most: float64(reserve), saved: float64(reserve)}
}

// Earn notes a call, which allows its share of a repetition. A nil budget needs none.
func (b *RetryBudget) Earn() {
	if b == nil || b.full.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.saved = min(b.saved+b.share, b.most)
	b.full.Store(b.saved == b.most)
}

// Spend reports whether one more repetition is allowed, and takes it off. A nil budget allows all.
func (b *RetryBudget) Spend() bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.saved < 1 {
		return false
	}
	b.saved--
	b.full.Store(false)
	return true
}

// backoff is how long to wait between attempts: exponential, with jitter. It is a dozen lines here
// because the core of the library has no dependency for it.
type backoff struct {
	first, most time.Duration // 0: 50 ms and 5 s
	step        time.Duration // the last wait without jitter; 0 at the beginning
}

// next returns the next wait: twice the last one, at most most, less a random part of up to a half.
func (b *backoff) next() time.Duration {
	b.step = min(2*b.step, b.longest())
	if b.step <= 0 {
		b.step = b.shortest()
	}
	return b.step/2 + rand.N(b.step/2+1)
}

// soon begins anew with a wait of up to half of the first one, by chance.
func (b *backoff) soon() time.Duration {
	b.step = 0
	return rand.N(b.shortest()/2 + 1)
}

// shortest returns the first wait.
func (b *backoff) shortest() time.Duration {
	if b.first <= 0 {
		return min(50*time.Millisecond, b.longest())
	}
	return min(b.first, b.longest())
}

// longest returns the longest wait.
func (b *backoff) longest() time.Duration {
	if b.most <= 0 {
		return 5 * time.Second
	}
	return b.most
}

// leastAttempt is how much time an attempt needs at least, to connect and to resume a session.
const leastAttempt = 10 * time.Millisecond

// nextBefore is next, but cut as by cutBefore. A wait that is cut does not make the next ones
// longer.
func (b *backoff) nextBefore(until time.Time) time.Duration {
	step := b.step
	wait := b.next()
	cut := cutBefore(wait, until)
	if cut < wait {
		b.step = step
	}
	return cut
}

// cutBefore returns wait, cut so that one more attempt can be made before until, which is zero if
// nothing depends on that.
func cutBefore(wait time.Duration, until time.Time) time.Duration {
	if until.IsZero() {
		return wait
	}
	left := time.Until(until)
	if latest := left - max(left/4, leastAttempt); latest > 0 && wait > latest {
		return latest
	}
	return wait
}
