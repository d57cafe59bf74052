package pool

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// load is how much a server has to do for this client, and how long that takes it.
type load struct {
	outstanding atomic.Int64 // calls and streams under way

	mu       sync.Mutex
	latency  time.Duration // of calls, as a moving average; guarded by mu, as all below; 0: unknown
	at       time.Time     // when the last of these ended
	answered time.Time     // when the last answer came
	expired  time.Time     // when the last call began that ended with its time
	overdue  float64       // the share of such calls among the last ten or so
}

const (
	// sample is the weight of one call in the moving average: about ten calls of another duration
	// make it another one, and a single slow one does not.
	sample = 0.1

	// ages is after how long without a call the latency counts for half. A server that was slow
	// gets a call again after some time, and nothing else would tell that it has become fast.
	ages = 10 * time.Second
)

// note notes the duration of a call, and whether it was answered.
func (l *load) note(began, now time.Time, answered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if answered {
		l.answered = now
		l.overdue *= 1 - sample
	}
	took := max(now.Sub(began), time.Microsecond)
	kept := 0.0 // of the latency until now
	if l.latency > 0 {
		kept = (1 - sample) * l.agedLocked(now)
	}
	l.latency = time.Duration(kept*float64(l.latency) + (1-kept)*float64(took))
	l.at = now
}

// answer notes an answer whose duration does not count.
func (l *load) answer(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered = now
}

// forget forgets the latency.
func (l *load) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latency = 0
}

// expire notes that a call ended with its time, and returns when the one before it began. ok is
// false unless that ended so, too, and no answer came since: one call, or several that began at
// once, say nothing of the server.
func (l *load) expire(began time.Time) (since time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	since, l.expired = l.expired, began
	l.overdue += sample * (1 - l.overdue)
	return since, since.After(l.answered) && since.Before(began)
}

// answers reports whether a call was answered after a time, and hardly any of late ended with its
// time.
func (l *load) answers(after time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answered.After(after) && l.overdue < sample
}

// expected returns the latency as of now, and 0 if nothing is known.
func (l *load) expected(now time.Time) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return float64(l.latency) * l.agedLocked(now)
}

// agedLocked returns how much the latency still counts.
func (l *load) agedLocked(now time.Time) float64 {
	idle := now.Sub(l.at)
	if idle < ages/10 {
		return 1
	}
	return math.Exp2(-float64(idle) / float64(ages))
}

// burden is how long calls are expected to take on a server.
type burden struct {
	calls   float64 // those under way and one more
	latency float64 // 0: unknown
}

func (l *load) weigh(now time.Time) burden {
	return burden{float64(l.outstanding.Load() + 1), l.expected(now)}
}

// lighter reports whether b is less than o divided by times, as far as that is known: as long as
// the latency of one is unknown only the calls count, and with equal calls that one is lighter, so
// that its latency gets known.
func (b burden) lighter(o burden, times float64) bool {
	switch {
	case b.latency > 0 && o.latency > 0:
		return b.calls*b.latency*times < o.calls*o.latency
	case b.calls*times == o.calls:
		return o.latency > 0
	}
	return b.calls*times < o.calls
}
