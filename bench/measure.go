package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// With many concurrent operations, one in sampled is timed: that is still thousands, and to time
// all would cost a tenth of a short call.
const (
	manyOps = 64
	sampled = 8
)

// drive repeats each op on its own goroutine, at least once, until d has passed, or one of them
// fails, and returns how often they ran in total. It records their durations unless lat is nil.
func drive(ops []op, d time.Duration, lat *latencies) (n int64, err error) {
	var stop atomic.Bool
	timer := time.AfterFunc(d, func() { stop.Store(true) })
	defer timer.Stop()
	every := int64(1)
	if len(ops) >= manyOps {
		every = sampled
	}
	var total atomic.Int64
	var first sync.Once
	var wg sync.WaitGroup
	for i, op := range ops {
		wg.Go(func() {
			var mine int64
			defer func() { total.Add(mine) }()
			for over := false; !over; over = stop.Load() {
				timed := lat != nil && mine%every == 0
				var begin time.Time
				if timed {
					begin = time.Now()
				}
				if e := op(); e != nil {
					first.Do(func() { err = e })
					stop.Store(true)
					return
				}
				if timed {
					lat.record(i, time.Since(begin))
				}
				mine++
			}
		})
	}
	wg.Wait()
	return total.Load(), err
}

// latencies counts durations of operations. Callers share a few histograms, because one for each
// would evict everything else from the processor's cache.
type latencies struct {
	shards [16]struct {
		mu sync.Mutex
		h  *hdrhistogram.Histogram // guarded by mu
	}
}

// slowest is the recorded duration of an operation that took longer.
const slowest = time.Minute

func newLatencies() *latencies {
	l := new(latencies)
	for i := range l.shards {
		l.shards[i].h = hdrhistogram.New(64, int64(slowest), 3)
	}
	return l
}

// record counts one operation of a caller.
func (l *latencies) record(caller int, d time.Duration) {
	s := &l.shards[caller%len(l.shards)]
	s.mu.Lock()
	s.h.RecordValue(int64(min(d, slowest))) // the error is for values beyond the slowest
	s.mu.Unlock()
}

// recordPaced counts one operation that was due at the end of each interval: operations that a slow
// one has delayed count as slow too.
func (l *latencies) recordPaced(d, interval time.Duration) {
	s := &l.shards[0]
	s.mu.Lock()
	s.h.RecordCorrectedValue(int64(min(d, slowest)), int64(interval))
	s.mu.Unlock()
}

// quantiles returns the median, the 99th and the 99.9th percentile.
func (l *latencies) quantiles() (p50, p99, p999 time.Duration) {
	all := hdrhistogram.New(64, int64(slowest), 3)
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		all.Merge(s.h)
		s.mu.Unlock()
	}
	at := func(q float64) time.Duration { return time.Duration(all.ValueAtQuantile(q)) }
	return at(50), at(99), at(99.9)
}

// usage is the resource usage of the process at a moment.
type usage struct {
	at      time.Time
	cpu     time.Duration // user and system, of all threads
	objects uint64        // allocated
	bytes   uint64        // allocated
}

func usageNow() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{at: time.Now(), cpu: cpuTime(), objects: m.Mallocs, bytes: m.TotalAlloc}
}

// cost fills in the cost of n operations since u, each of them with size bytes of payload one way.
func (u usage) cost(r *row, n int64, size int) {
	now, ops := usageNow(), float64(n)
	seconds := now.at.Sub(u.at).Seconds()
	r.OpsPerS = figure(ops / seconds)
	r.MBPerS = figure(ops * float64(size) / seconds / 1e6)
	if n == 0 {
		return
	}
	r.AllocsPerOp = figure(float64(now.objects-u.objects) / ops)
	r.BytesPerOp = figure(float64(now.bytes-u.bytes) / ops)
	if c := now.cpu - u.cpu; c > 0 {
		r.CPUPerOp = figure(c.Seconds() * 1e6 / ops)
	}
}

// memory returns the bytes of live objects and of goroutines' stacks.
func memory() (heap, stacks float64) {
	runtime.GC()
	runtime.GC() // the first run only moves the content of pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), float64(m.StackInuse)
}
