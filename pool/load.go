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

	mu      sync.Mutex
	latency time.Duration // of calls, as a moving average; guarded by mu; 0: none has ended yet
	at      time.Time     // of the last one; guarded by mu
}

const (
	// sample is the weight of one call in the moving average: about ten calls of another duration
	// make it another one, and a single slow one does not.
	sample = 0.1

	// ages is after how long without a call the latency counts for half. A server that was slow
	// gets a call again after some time, and nothing else would tell that it has become fast.
	ages = 10 * time.Second
)

// begin notes that a call begins. The function that it returns is called at its end, and says
// whether its duration counts; only the first time matters.
func (l *load) begin() (done func(counts bool)) {
	l.outstanding.Add(1)
	began := time.Now()
	var over atomic.Bool
	return func(counts bool) {
		if over.Swap(true) {
			return
		}
		l.outstanding.Add(-1)
		if counts {
			now := time.Now()
			l.note(now, now.Sub(began))
		}
	}
}

func (l *load) note(now time.Time, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	took = max(took, time.Microsecond)
	if l.latency == 0 {
		l.latency = took
	} else {
		l.latency += time.Duration(sample * float64(took-l.latency))
	}
	l.at = now
}

// expected returns the latency as of now, and 0 if nothing is known.
func (l *load) expected(now time.Time) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	idle := now.Sub(l.at)
	if l.latency == 0 || idle < ages/10 {
		return float64(l.latency)
	}
	return float64(l.latency) * math.Exp2(-float64(idle)/float64(ages))
}

// lighter reports whether a call is done sooner with l than with o, as far as that is known. As
// long as one of them has answered nothing only what is under way counts.
func (l *load) lighter(o *load, now time.Time) bool {
	mine, others := float64(l.outstanding.Load()+1), float64(o.outstanding.Load()+1)
	if a, b := l.expected(now), o.expected(now); a > 0 && b > 0 {
		mine, others = mine*a, others*b
	}
	return mine < others
}
