package main

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// streams sends pieces of size bytes over streams of a kind. The measurement ends when all have
// been received.
func streams(kind streamKind, size int) func(*cellRun) error {
	return func(r *cellRun) error {
		l, err := r.connect(needs{})
		if err != nil {
			return err
		}
		senders, err := repeat(r.callers, func() (sender, error) { return l.(streamer).open(kind) })
		if err != nil {
			return err
		}
		var ops []op
		for _, s := range senders {
			b := payload(size)
			ops = append(ops, func() error { return s.send(b) })
		}
		return r.measure(ops, size, nil, func(n int64) error { return finishAll(senders, n*int64(size)) })
	}
}

// finishAll ends streams and returns an error unless their readers have received all sent bytes.
func finishAll(senders []sender, sent int64) error {
	var received atomic.Int64
	errs := make([]error, len(senders))
	var wg sync.WaitGroup
	for i, s := range senders {
		wg.Go(func() {
			n, err := s.finish()
			received.Add(n)
			errs[i] = err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if got := received.Load(); got != sent {
		return fmt.Errorf("of %d bytes sent, %d were received", sent, got)
	}
	return nil
}

// urgent makes one call each millisecond beside a bulk stream without a limit.
func urgent(r *cellRun) error {
	const every = time.Millisecond
	l, err := r.connect(needs{})
	if err != nil {
		return err
	}
	call, err := l.(caller).newCaller(payload(small), true)
	if err != nil {
		return err
	}
	f, err := startFlood(l, background, bulkPayload)
	if err != nil {
		return err
	}
	r.later(f.sending.Wait)
	if _, err := drive([]op{call}, r.warmUp(), nil); err != nil {
		return err
	}
	lat, tick := newLatencies(), time.NewTicker(every)
	defer tick.Stop()
	begin, before := time.Now(), f.sent.Load()
	n, err := drive([]op{func() error {
		<-tick.C
		due := time.Now()
		err := call()
		lat.recordPaced(time.Since(due), every)
		return err
	}}, r.time, nil)
	seconds := time.Since(begin).Seconds()
	r.row.OpsPerS = figure(float64(n) / seconds)
	r.row.MBPerS = figure(float64(f.sent.Load()-before) / seconds / 1e6)
	r.row.setLatencies(lat)
	return errors.Join(err, f.failure())
}

// bulkPayload is the payload of floods. It exists from the start, so that no measurement of memory
// includes it.
var bulkPayload = payload(bulkWrite)

// flood sends on a stream as fast as its reader permits.
type flood struct {
	sent    atomic.Int64 // bytes
	err     atomic.Pointer[error]
	sending sync.WaitGroup
}

// startFlood sends b to a stream of a kind, repeatedly, on a goroutine that ends with the link, or
// after an amount that shows that nothing bounds it.
func startFlood(l link, kind streamKind, b []byte) (*flood, error) {
	s, err := l.(streamer).open(kind)
	if err != nil {
		return nil, err
	}
	f := new(flood)
	f.sending.Go(func() {
		for kind != stuck || f.sent.Load() < unbounded {
			if err := s.send(b); err != nil {
				f.err.Store(&err)
				return
			}
			f.sent.Add(int64(len(b)))
		}
	})
	return f, nil
}

// failure returns the reason of the end of the stream. The link must not have been closed.
func (f *flood) failure() error {
	if err := f.err.Load(); err != nil {
		return fmt.Errorf("the stream beside the calls: %w", *err)
	}
	return nil
}
