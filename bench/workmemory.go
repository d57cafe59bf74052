package main

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// unbounded is how many bytes may be sent to a stopped reader before the attempt is given up.
const unbounded = 256 << 20

// stuckReader makes one caller call beside a stream with a reader that has stopped, and measures
// the memory that this stream holds.
func stuckReader(r *cellRun) error {
	l, err := r.connect(needs{})
	if err != nil {
		return err
	}
	call, err := l.(caller).newCaller(payload(small), false)
	if err != nil {
		return err
	}
	if _, err := drive([]op{call}, r.warmUp(), nil); err != nil {
		return err
	}
	before, _ := memory()
	f, err := startFlood(l, stuck, bulkPayload)
	if err != nil {
		return err
	}
	r.later(f.sending.Wait)
	if err := r.besideStuck(f, call); err != nil {
		return err
	}
	after, _ := memory()
	r.row.MemBytes = figure(max(0, after-before))
	return f.failure()
}

// besideStuck measures calls while the sender of the flood is blocked. A sender that was only not
// scheduled for a while, on a busy machine, is waited for again, and longer.
func (r *cellRun) besideStuck(f *flood, call op) error {
	const shortest, longest = 200 * time.Millisecond, 20 * time.Second
	for patience := shortest; ; patience *= 4 {
		f.untilStuck(patience)
		if f.sent.Load() >= unbounded {
			return fmt.Errorf("the sender of an unread stream was not blocked in %d MiB", unbounded>>20)
		}
		held := f.sent.Load()
		if err := r.measure([]op{call}, small, newLatencies(), nil); err != nil {
			return err
		}
		if more := f.sent.Load() - held; more == 0 {
			return nil
		} else if patience > longest {
			return fmt.Errorf("the sender of an unread stream was blocked for a moment only, and then sent another %d bytes", more)
		}
	}
}

// untilStuck waits until nothing has been sent for some time.
func (f *flood) untilStuck(patience time.Duration) {
	const look = 10 * time.Millisecond
	tick := time.NewTicker(look)
	defer tick.Stop()
	for last, quiet := int64(-1), time.Duration(0); quiet < patience && last < unbounded; {
		<-tick.C
		if now := f.sent.Load(); now != last {
			last, quiet = now, 0
		} else {
			quiet += look
		}
	}
}

// idleFor is how long sessions have been idle when their memory is measured: shorter only in short
// measurements, as in tests.
func (r *cellRun) idleFor() time.Duration { return min(5*time.Second, 10*r.time) }

// idleSessions opens sessions, uses each once, and measures their cost when they are idle.
func idleSessions(r *cellRun) error {
	if _, err := r.connect(needs{}); err != nil { // this one has the shared resources
		return err
	}
	h, err := r.impl.listen(context.Background(), needs{})
	if err != nil {
		return err
	}
	var links []link
	r.later(func() { closeAll(links, h) })
	heap, stacks := memory()
	links, err = repeat(r.callers, func() (link, error) { return h.dial(context.Background()) })
	if err != nil {
		return err
	}
	for _, l := range links {
		if err := useOnce(l, needs{}); err != nil {
			return err
		}
	}
	wait(r.idleFor())
	heapNow, stacksNow := memory()
	r.row.MemBytes = figure((heapNow - heap + stacksNow - stacks) / float64(r.callers))
	return nil
}

// idlePipes opens streams with waiting handlers, and measures their cost.
func idlePipes(r *cellRun) error {
	var arrived atomic.Int64
	l, err := r.connect(needs{pipes: r.callers, arrived: &arrived})
	if err != nil {
		return err
	}
	first, err := l.(streamer).open(idle)
	if err != nil {
		return err
	}
	if err := until(&arrived, 1); err != nil {
		return err
	}
	heap, stacks := memory()
	open, err := repeat(r.callers, func() (sender, error) { return l.(streamer).open(idle) })
	if err != nil {
		return err
	}
	if err := until(&arrived, int64(r.callers)+1); err != nil {
		return err
	}
	heapNow, stacksNow := memory()
	r.row.MemBytes = figure((heapNow - heap) / float64(r.callers))
	r.row.StackBytes = figure((stacksNow - stacks) / float64(r.callers))
	runtime.KeepAlive(first)
	runtime.KeepAlive(open)
	return nil
}

// until waits until n streams have arrived at their handlers.
func until(arrived *atomic.Int64, n int64) error {
	const patience = 2 * time.Minute
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); arrived.Load() < n; <-tick.C {
		if time.Now().After(end) {
			return fmt.Errorf("of %d streams, %d have arrived in %v", n, arrived.Load(), patience)
		}
	}
	return nil
}
