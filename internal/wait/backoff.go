package wait

import (
	"math/rand/v2"
	"time"
)

// Backoff computes the waits between attempts: exponential, with jitter. It is implemented here to
// spare the core of the library a dependency. It does not lock itself.
type Backoff struct {
	First, Most time.Duration // 0: 50 ms and 5 s

	step time.Duration // the last wait without jitter; 0 at the beginning
}

// Next returns the next wait: twice the last one, at most Most, less a random part of up to a half.
func (b *Backoff) Next() time.Duration {
	b.step = min(2*b.step, b.Longest())
	if b.step <= 0 {
		b.step = b.shortest()
	}
	return b.step/2 + rand.N(b.step/2+1)
}

// Reset makes the next wait the first one again.
func (b *Backoff) Reset() { b.step = 0 }

// Soon resets b and returns a random wait of up to half of the first one.
func (b *Backoff) Soon() time.Duration {
	b.Reset()
	return rand.N(b.shortest()/2 + 1)
}

// shortest returns the first wait.
func (b *Backoff) shortest() time.Duration {
	if b.First <= 0 {
		return min(50*time.Millisecond, b.Longest())
	}
	return min(b.First, b.Longest())
}

// Longest returns the longest wait.
func (b *Backoff) Longest() time.Duration {
	if b.Most <= 0 {
		return 5 * time.Second
	}
	return b.Most
}

// leastAttempt is the minimum time for an attempt to connect and to resume a session.
const leastAttempt = 10 * time.Millisecond

// NextBefore is Next, but cut as by CutBefore. A wait that is cut does not lengthen the next ones.
func (b *Backoff) NextBefore(until time.Time) time.Duration {
	step := b.step
	wait := b.Next()
	cut := CutBefore(wait, until)
	if cut < wait {
		b.step = step
	}
	return cut
}

// CutBefore returns wait, cut so that one more attempt can be made before until, unless until is
// zero.
func CutBefore(wait time.Duration, until time.Time) time.Duration {
	if until.IsZero() {
		return wait
	}
	left := time.Until(until)
	if latest := left - max(left/4, leastAttempt); latest > 0 && wait > latest {
		return latest
	}
	return wait
}
