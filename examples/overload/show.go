package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"
)

// parts is the number of measurements: -seconds is divided by it, and a little time is left between
// them.
const parts = 12

// overloads are the loads as multiples of the server's capacity.
var overloads = []int{2, 10}

// show is the whole program after its flags.
type show struct {
	out     io.Writer     // these are fixed
	url     string        // where servers listen
	measure time.Duration // each time

	capacity float64       // calls each second
	unloaded time.Duration // the 99th percentile of a server with a low load
	results  []result
}

// result is a line of the table.
type result struct {
	reaction string
	times    int // the capacity
	load     *load
	memory   uint64 // maximum bytes of heap and stacks
	waiting  int    // maximum waiting calls of one session at the server
	refuses  bool   // the reaction is to refuse calls
}

func (s *show) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

func (s *show) run(ctx context.Context) error {
	if err := s.calibrate(ctx); err != nil {
		return err
	}
	s.say(`A call takes %v, and %d run at once: that is %.0f calls a second, of which this machine manages %.0f. While the server has
little to do, 99 of 100 calls take less than %v. Now %d clients offer it more than it can do; %.0f of 100 calls are urgent.
`, takes, workers, nominal, s.capacity, round(s.unloaded), clients, 100.0/urgentEvery)
	s.head()
	for _, r := range reactions() {
		for _, times := range overloads {
			res, err := s.offer(ctx, &r, times)
			if err != nil {
				return fmt.Errorf("%s, %d×: %w", r.name, times, err)
			}
			s.results = append(s.results, res)
			s.line(&res)
			if err := res.check(); err != nil {
				return fmt.Errorf("%s, %d×: %w", r.name, times, err)
			}
		}
	}
	return nil
}

// calibrate measures the capacity of the server on this machine, where a timer may be late, and the
// duration of calls at a low load.
func (s *show) calibrate(ctx context.Context) error {
	r := &reactions()[0]
	st, err := newStage(ctx, s.url, r)
	if err != nil {
		return err
	}
	defer st.close()
	quiet := &load{stage: st, reaction: r, rate: nominal / 4, warmUp: s.measure / 10, measure: s.measure}
	if err := quiet.run(ctx); err != nil {
		return err
	}
	s.unloaded = sorted(append(quiet.answered[0], quiet.answered[1]...)).percentile(99)
	// a busy machine may answer nothing at first
	for measure := s.measure; s.capacity == 0; measure *= 2 {
		full := &load{stage: st, reaction: r, rate: nominal * 2, warmUp: measure / 2, measure: measure}
		if err := full.run(ctx); err != nil {
			return err
		}
		s.capacity = full.goodput()
	}
	return nil
}

// offer offers a multiple of its capacity to a new server.
func (s *show) offer(ctx context.Context, r *reaction, times int) (res result, err error) {
	st, err := newStage(ctx, s.url, r)
	if err != nil {
		return res, err
	}
	defer st.close()
	runtime.GC() // the garbage of the previous run
	l := &load{stage: st, reaction: r, rate: s.capacity * float64(times), warmUp: s.measure / 4, measure: s.measure}
	res = result{reaction: r.name, times: times, load: l, refuses: len(r.server) > 0}
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { res.memory = peak(stop) })
	err = l.run(ctx)
	close(stop)
	watching.Wait()
	res.waiting = st.server.Stats().Total.MostWaiting
	return res, err
}

// check returns an error for results that are wrong even on the slowest machine.
func (r *result) check() error {
	refused := r.load.refused.Load()
	switch {
	case !r.refuses && refused > 0:
		return fmt.Errorf("%d calls were refused, without a reason", refused)
	case r.refuses && r.waiting > maxWaiting+1:
		// briefly there is one that replaces another
		return fmt.Errorf("%d calls of one session waited, in spite of a limit of %d", r.waiting, maxWaiting)
	}
	return nil
}

// peak returns the maximum memory in use until stop is closed.
func peak(stop <-chan struct{}) (most uint64) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapInuse+m.StackInuse)
		select {
		case <-tick.C:
		case <-stop:
			return most
		}
	}
}

// head prints the names of the columns.
func (s *show) head() {
	s.say("%-15s %7s  %9s %9s  %10s %10s  %9s %9s  %8s %8s", "", "", "", "", "p99 of", "p99 of", "refused", "not made", "waiting,", "memory,")
	s.say("%-15s %7s  %9s %9s  %10s %10s  %9s %9s  %8s %8s", "reaction", "offered", "answered", "of all", "urgent", "normal", "by server", "by client", "at most", "at most")
}

func (s *show) line(r *result) {
	l := r.load
	s.say("%-15s %6d×  %7.0f/s %7.0f %%  %10v %10v  %9d %9d  %8d %8s", r.reaction, r.times, l.goodput(), 100*l.goodput()/s.capacity,
		round(sorted(l.answered[1]).percentile(99)), round(sorted(l.answered[0]).percentile(99)), l.refused.Load(), l.lost.Load(), r.waiting, fmt.Sprintf("%d MiB", r.memory>>20))
}

// judge prints and returns the figures that were missed.
func (s *show) judge() (missed []string) {
	bound := 2*s.unloaded + takes
	for _, r := range s.results {
		if share := 100 * r.load.goodput() / s.capacity; share < 90 {
			missed = append(missed, fmt.Sprintf("%s, %d×: %.1f %% of the capacity was used, and 90 should be", r.reaction, r.times, share))
		}
		if p := sorted(r.load.answered[1]).percentile(99); p > bound {
			missed = append(missed, fmt.Sprintf("%s, %d×: urgent calls took %v, and %v should be enough", r.reaction, r.times, round(p), round(bound)))
		}
	}
	if len(missed) == 0 {
		s.say("\nThe server did its work, at 90 %% of its capacity or more, and urgent calls took less than %v: twice what they take without load, and one call more.", round(bound))
	}
	for _, m := range missed {
		s.say("\nMISSED: %s.", m)
	}
	return missed
}
