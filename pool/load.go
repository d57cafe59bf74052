package pool

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// serverLoad is the load of a server from this client, and the latency of its calls.
type serverLoad struct {
	outstanding atomic.Int64 // running calls and streams

	mu       sync.Mutex
	latency  time.Duration // moving average over calls; guarded by mu, as all below; 0: unknown
	at       time.Time     // end of the last call in the average
	halving  time.Duration // see firstHalving; 0 until the first call
	answered time.Time     // time of the last answer
	expired  time.Time     // start of the last call that expired
	overdue  float64       // share of expired calls among about the last ten
}

const (
	// sample is the weight of one call in the moving average: about ten calls of another duration
	// change it, and a single slow call does not.
	sample = 0.1

	// firstHalving is the idle time after which the latency counts for half. A server that was slow
	// then gets a call again, without which the pool would not notice that it has become fast. Each
	// such call that is slow again doubles the time, up to longestHalving: a server that was slow
	// for a moment soon has its share again, and one that stays slow costs few calls.
	firstHalving, longestHalving = time.Second, 16 * time.Second
)

// note records the duration of a call, and whether the server answered it.
func (l *serverLoad) note(began, now time.Time, answered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if answered {
		l.answered = now
		l.overdue *= 1 - sample
	}
	took := max(now.Sub(began), time.Microsecond)
	kept := 0.0 // weight of the present latency
	if l.latency > 0 {
		kept = (1 - sample) * l.agedLocked(now)
	}
	switch idle := began.Sub(l.at); {
	case took < l.latency/2, idle >= 0 && idle < l.halving:
		l.halving = firstHalving
	case idle >= 0: // not at the same time as the last one
		l.halving = min(max(2*l.halving, firstHalving), longestHalving)
	}
	l.latency = time.Duration(kept*float64(l.latency) + (1-kept)*float64(took))
	l.at = now
}

// answer records an answer without its duration.
func (l *serverLoad) answer(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered = now
}

// forget forgets the latency.
func (l *serverLoad) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latency = 0
}

// expire records that a call expired, and returns the start of the expired call before it. ok is
// false unless the earlier call began before this one and the server has not answered since. One
// call, or several that began at once, say nothing about the server.
func (l *serverLoad) expire(began time.Time) (since time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	since, l.expired = l.expired, began
	l.overdue += sample * (1 - l.overdue)
	return since, since.After(l.answered) && since.Before(began)
}

// answers reports whether the server answered a call after that time, with hardly any expired calls
// of late.
func (l *serverLoad) answers(after time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answered.After(after) && l.overdue < sample
}

// expected returns the latency as of now, or 0 if it is unknown.
func (l *serverLoad) expected(now time.Time) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return float64(l.latency) * l.agedLocked(now)
}

// agedLocked returns the present weight of the latency.
func (l *serverLoad) agedLocked(now time.Time) float64 {
	idle := now.Sub(l.at)
	if idle < firstHalving {
		return 1
	}
	return math.Exp2(-float64(idle) / float64(l.halving))
}

// expectedLoad is the expected time of calls on a server.
type expectedLoad struct {
	calls   float64 // running calls and one more
	latency float64 // 0: unknown
}

func (l *serverLoad) weigh(now time.Time) expectedLoad {
	return expectedLoad{float64(l.outstanding.Load() + 1), l.expected(now)}
}

// lighter reports whether b is less than o divided by times. While one of the latencies is unknown,
// only the calls count. With equal calls the burden without a latency is lighter, so that its
// latency becomes known.
func (b expectedLoad) lighter(o expectedLoad, times float64) bool {
	switch {
	case b.latency > 0 && o.latency > 0:
		return b.calls*b.latency*times < o.calls*o.latency
	case b.calls*times == o.calls:
		return o.latency > 0
	}
	return b.calls*times < o.calls
}
