package main

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// pathWarmUp is how long a path is filled before the measurement.
func (r *cellRun) pathWarmUp() time.Duration {
	return max(r.time/2, min(20*r.workload.path.roundTrip, 2*r.time))
}

// wait waits while the background traffic continues.
func wait(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // the measured time

// pathStreams sends over streams through a link in writes of size bytes. It counts the bytes that
// arrive meanwhile.
func pathStreams(size int, times time.Duration) func(*cellRun) error {
	return func(r *cellRun) error {
		m := new(meter)
		l, err := r.connect(needs{meter: m})
		if err != nil {
			return err
		}
		floods, err := repeat(r.callers, func() (*flood, error) { return startFlood(l, bulk, payload(size)) })
		for _, f := range floods {
			r.later(f.sending.Wait)
		}
		if err != nil {
			return err
		}
		wait(r.pathWarmUp())
		begin, before := time.Now(), m.now()
		wait(times * r.time)
		end, after := time.Now(), m.now()
		total := int64(0)
		for i := range after {
			if i < len(before) {
				after[i] -= before[i]
			}
			total += after[i]
		}
		r.row.MBPerS = figure(float64(total) / end.Sub(begin).Seconds() / 1e6)
		if r.workload.path.rate > 0 {
			r.row.OfPath = figure(float64(total) / r.path.allows(begin, end))
		}
		if r.callers > 1 && len(after) == r.callers { // a bare connection has no streams
			r.row.Jain = figure(jain(after))
		}
		return firstFailure(floods)
	}
}

// firstFailure returns the reason of the end of a flood.
func firstFailure(floods []*flood) error {
	for _, f := range floods {
		if err := f.failure(); err != nil {
			return err
		}
	}
	return nil
}

// pathUrgent makes a call each 20 ms, whether earlier ones are answered or not, beside a stream
// that uses the whole link, in writes of size bytes.
func pathUrgent(kind streamKind, size int, times float64) func(*cellRun) error {
	const every = 20 * time.Millisecond
	return func(r *cellRun) error {
		d := time.Duration(times * float64(r.time))
		l, err := r.connect(needs{message: size})
		if err != nil {
			return err
		}
		calls, err := repeat(r.impl.mostCallers(32), func() (op, error) { return l.(caller).newCaller(payload(small), true) })
		if err != nil {
			return err
		}
		f, err := startFlood(l, kind, payload(size))
		if err != nil {
			return err
		}
		r.later(f.sending.Wait)
		wait(r.pathWarmUp())
		p := newPaced(calls)
		begin, before := time.Now(), r.path.passed()
		p.run(d, min(every, r.time/10))
		end := time.Now()
		passed := float64(r.path.passed() - before)
		results, err := p.finish(patience)
		r.row.OpsPerS = figure(float64(len(results)) / end.Sub(begin).Seconds())
		r.row.MBPerS = figure(passed / end.Sub(begin).Seconds() / 1e6)
		r.row.OfPath = figure(passed / r.path.allows(begin, end))
		r.pacedLatencies(results)
		return errors.Join(err, f.failure())
	}
}

// patience is how long to wait for late calls.
const patience = time.Second

// pacedLatencies fills in the durations of calls, with those after a change of the path separately.
func (r *cellRun) pacedLatencies(results []pacedCall) {
	lat, changing := newLatencies(), newLatencies()
	for i, c := range results {
		if r.path.changing(c.due) {
			changing.record(i, c.took)
		} else {
			lat.record(i, c.took)
		}
	}
	r.row.setLatencies(lat)
	r.row.RoundTrips = r.roundTrips(r.row.P99)
	if r.workload.path.halved > 0 {
		_, p99, _ := changing.quantiles()
		r.row.Changing = r.roundTrips(micros(p99))
	}
}

// roundTrips returns a latency in round trips.
func (r *cellRun) roundTrips(f figure) figure { return f / micros(r.workload.path.roundTrip) }

// pacedCall is a call that was due at a time.
type pacedCall struct {
	due  time.Time
	took time.Duration
}

// paced makes calls at a fixed pace.
type paced struct {
	alone   bool // there is only one caller
	due     chan time.Time
	calling sync.WaitGroup

	mu      sync.Mutex
	waiting map[time.Time]struct{} // guarded by mu, as all below; the unanswered calls
	done    []pacedCall
	err     error
}

// newPaced makes each of calls on its own goroutine, which ends with finish, or when its call ends.
func newPaced(calls []op) *paced {
	p := &paced{alone: len(calls) == 1, due: make(chan time.Time, 1<<16), waiting: make(map[time.Time]struct{})}
	for _, call := range calls {
		p.calling.Go(func() {
			for due := range p.due {
				p.back(due, call())
			}
		})
	}
	return p
}

// run makes a call in each interval every, at least one, for the duration d. A single caller skips
// calls while it is busy: it would be late for all later ones.
func (p *paced) run(d, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for end, over := time.Now().Add(d), false; !over; over = !time.Now().Before(end) {
		due := time.Now()
		p.mu.Lock()
		busy := p.alone && len(p.waiting) > 0
		if !busy {
			p.waiting[due] = struct{}{}
			p.due <- due // there is room
		}
		p.mu.Unlock()
		<-tick.C
	}
}

// back records that the call that was due then is answered.
func (p *paced) back(due time.Time, err error) {
	took := time.Since(due)
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.waiting[due]; !ok {
		return // it has counted already
	}
	delete(p.waiting, due)
	p.done = append(p.done, pacedCall{due, took})
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("a call: %w", err)
	}
}

// finish returns all calls. Those that are not answered after patience count as if they were.
func (p *paced) finish(patience time.Duration) ([]pacedCall, error) {
	close(p.due)
	within(patience, p.calling.Wait)
	p.mu.Lock()
	defer p.mu.Unlock()
	for due := range p.waiting {
		delete(p.waiting, due)
		p.done = append(p.done, pacedCall{due, time.Since(due)})
	}
	return p.done, p.err
}

// pathCalls makes callers send requests of size bytes through a link.
func pathCalls(size int) func(*cellRun) error {
	return func(r *cellRun) error {
		if err := calls(size)(r); err != nil {
			return err
		}
		for _, f := range []*figure{&r.row.AllocsPerOp, &r.row.BytesPerOp, &r.row.CPUPerOp} {
			*f = absent // it would include the link
		}
		r.row.RoundTrips = r.roundTrips(r.row.P50)
		r.row.OfPath = r.row.OpsPerS * figure(r.workload.path.roundTrip.Seconds()) / figure(r.callers)
		return nil
	}
}

// pathFirst opens streams through a link, one after the other, sends size bytes and receives as
// many, and measures the time to the first of these.
func pathFirst(size int) func(*cellRun) error {
	return func(r *cellRun) error {
		l, err := r.connect(needs{ask: size})
		if err != nil {
			return err
		}
		request, lat := payload(size), newLatencies()
		begin, n := time.Now(), 0
		for ; n == 0 || time.Since(begin) < r.time; n++ {
			first, err := l.(asker).ask(request)
			if err != nil {
				return err
			}
			lat.record(0, first)
		}
		r.row.OpsPerS = figure(float64(n) / time.Since(begin).Seconds())
		r.row.setLatencies(lat)
		r.row.RoundTrips = r.roundTrips(r.row.P50)
		return nil
	}
}
