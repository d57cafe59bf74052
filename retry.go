package asterisque

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/internal/wait"
)

// Retry repeats calls that failed because a side was overloaded or unavailable, and that certainly
// did not run (see [Repeatable]). The wait between two attempts doubles each time, is randomly
// shortened by up to a half, so that callers do not return all at once, and is extended by the
// delay that the overloaded side advised ([RetryAfter]), but never longer than Most. The zero Retry
// is ready to use. A Retry is safe for concurrent use, and meant to be shared.
type Retry struct {
	Attempts int           // maximum, including the first one; 0 is 4
	First    time.Duration // the wait before the second attempt; 0 is 50 ms
	Most     time.Duration // maximum wait, whatever the overloaded side advised; 0 is 5 s
	Budget   *RetryBudget  // bounds the share of repeated calls; nil: no bound
}

// Do calls call until it succeeds, fails with an error that is not to be retried, or may not be
// repeated any more, and returns its last error. The end of ctx ends the waits; the error is still
// that of the last call, which is more specific.
func (r *Retry) Do(ctx context.Context, call func(ctx context.Context) error) error {
	attempts := r.Attempts
	if attempts < 1 {
		attempts = 4
	}
	back := wait.Backoff{First: r.First, Most: r.Most}
	r.Budget.Earn()
	for n := 1; ; n++ {
		err := call(ctx)
		if err == nil || n >= attempts || !worthRetrying(err) || !r.Budget.Spend() {
			return err
		}
		advice, _ := RetryAfter(err)
		if !wait.Sleep(ctx, min(advice+back.Next(), back.Longest())) {
			return err
		}
	}
}

func worthRetrying(err error) bool {
	return Repeatable(err) && (errors.Is(err, ErrOverloaded) || errors.Is(err, ErrUnavailable))
}

// RetryBudget bounds the share of repetitions among all calls, so that retries do not add to the
// load of an overloaded peer. It is safe for concurrent use.
type RetryBudget struct {
	share, most float64 // fixed

	full atomic.Bool // saved is most: most callers earn, and few spend

	mu    sync.Mutex
	saved float64 // guarded by mu: number of repetitions left
}

// NewRetryBudget returns a budget that allows share repetitions for each call, 0.1 being one for
// ten calls, and saves up to reserve of them, with which it begins.
func NewRetryBudget(share float64, reserve int) *RetryBudget {
	return &RetryBudget{share: share, most: float64(reserve), saved: float64(reserve)}
}

// Earn counts a call, which allows its share of a repetition. Earn of a nil budget does nothing.
func (b *RetryBudget) Earn() {
	if b == nil || b.full.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.saved = min(b.saved+b.share, b.most)
	b.full.Store(b.saved == b.most)
}

// Spend reports whether one more repetition is allowed, and consumes it. A nil budget allows all.
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
