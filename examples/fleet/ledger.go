package main

import (
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/asterisque-go/asterisque"
)

// ledger records the calls that a process makes and runs: in its journal for the audit, and in
// figures for the table. The control asks for both.
type ledger struct {
	journal *journal            // these are fixed
	calls   *semaphore.Weighted // each running call holds one, an audit all

	served, made, answered, failed atomic.Int64

	mu    sync.Mutex
	times []time.Duration // guarded by mu; of the calls answered since the last reset
}

// errand is a call that is about to be made.
type errand struct {
	caller, peer string        // its node, and its callee
	way          string        // throughExchange, or empty
	patience     time.Duration // its time limit, waiting for its peer included
}

const (
	patience = 4 * time.Second

	// lastWait is how long running calls may continue when their process ends: their callees may
	// have ended before.
	lastWait = time.Second

	// The maximum duration of a call.
	mostAsked  = 25 * time.Millisecond
	mostPlaced = 100 * time.Millisecond

	mostCalls = 1 << 20
	mostTimes = 1 << 14 // that are kept
)

func newLedger(j *journal) *ledger {
	return &ledger{journal: j, calls: semaphore.NewWeighted(mostCalls)}
}

// call makes a call of a node to one of its peers, and records the outcome. The error is that of
// the journal. A call that has begun when ctx ends may continue for lastWait.
func (l *ledger) call(ctx context.Context, e errand, do func(ctx context.Context, call number) error) error {
	if err := l.calls.Acquire(ctx, 1); err != nil {
		return nil // it is over
	}
	defer l.calls.Release(1)
	call, err := l.journal.begin(e.caller, e.way)
	if err != nil {
		return err
	}
	l.made.Add(1)
	begin := time.Now()
	calling, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.patience)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastWait, cancel) })()
	if err := do(calling, call); err != nil {
		l.failed.Add(1)
		return l.journal.write(failure(call, e.peer, err))
	}
	l.answered.Add(1)
	l.took(time.Since(begin))
	return l.journal.write(entry{event: answered, call: call})
}

func (l *ledger) took(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.times) < mostTimes {
		l.times = append(l.times, d)
	}
}

// run records that a call has run, before its answer is sent. It takes a while, to simulate work: a
// call that ends in the middle of it has not run.
func (l *ledger) run(ctx context.Context, call number, way string, most time.Duration) error {
	if err := rest(ctx, most/5+rand.N(most*4/5)); err != nil {
		return err
	}
	l.served.Add(1)
	return l.journal.write(entry{ran, call, way})
}

// note records a further event, of a call or of a node. A journal that cannot be written ends the
// process with the next call.
func (l *ledger) note(of number, what string) { l.journal.write(entry{noted, of, what}) }

// offer adds the functions for the control to a service. sessions returns the number of sessions on
// which the process may call now.
func (l *ledger) offer(svc *asterisque.Service, sessions func() int) {
	look.Handle(svc, func(_ context.Context, anew bool) (figures, error) {
		return figures{
			Served: l.served.Load(), Made: l.made.Load(), Answered: l.answered.Load(), Failed: l.failed.Load(),
			P99: l.p99(anew), Sessions: sessions(),
		}, nil
	})
	audit.Handle(svc, l.audit)
}

// p99 returns the 99th percentile of the durations since the last reset, or 0 if there were no
// calls.
func (l *ledger) p99(anew bool) time.Duration {
	l.mu.Lock()
	times := slices.Clone(l.times)
	if anew {
		l.times = nil
	}
	l.mu.Unlock()
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[(len(times)-1)*99/100]
}

// audit is the handler of audit.
func (l *ledger) audit(ctx context.Context, _ struct{}, p *asterisque.Pipe[[]string, struct{}]) (int, error) {
	if err := l.calls.Acquire(ctx, mostCalls); err != nil {
		return 0, err
	}
	defer l.calls.Release(mostCalls)
	if err := p.Send(ctx, nil); err != nil {
		return 0, err
	}
	if _, err := p.Recv(ctx); err != nil {
		return 0, err
	}
	lines, err := l.journal.lines()
	if err != nil {
		return 0, err
	}
	for some := range slices.Chunk(lines, atOnce) {
		if err := p.Send(ctx, some); err != nil {
			return 0, err
		}
	}
	if err := p.Send(ctx, nil); err != nil {
		return 0, err
	}
	if _, err := p.Recv(ctx); err != io.EOF { // other processes may still be asked
		return 0, err
	}
	return len(lines), nil
}

// rest waits.
func rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
