package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/priority"
)

// Calls are offered by the clock, whether earlier ones have been answered or not, as independent
// users do. So the duration of a call counts from the moment at which it was due. The number of
// concurrent calls of a client is bounded, as in any real program: a call that finds all callers
// busy is not made, and counts as lost. Urgent calls have separate callers.
const (
	normalCallers = 512 // of each session, at once
	urgentCallers = 128
	urgentEvery   = 32                     // one call in 32 is urgent, about 3 in 100
	beat          = 500 * time.Microsecond // between two checks of the clock
)

// priorities are those of normal calls and of urgent ones.
var priorities = [2]priority.Priority{priority.Normal, 10}

// load is the load offered to a stage, and its outcome.
type load struct {
	stage    *stage
	reaction *reaction
	rate     float64       // calls each second, over all sessions
	warmUp   time.Duration // before it is measured
	measure  time.Duration

	begin   time.Time
	callers sync.WaitGroup
	offered atomic.Int64 // in the measured time, as all below
	lost    atomic.Int64
	refused atomic.Int64

	mu       sync.Mutex
	answered [2]latencies // guarded by mu, as failed; normal calls, and urgent ones
	inTime   int          // guarded by mu; answers within the measured time
	failed   error        // the first error other than a refusal
}

// run offers calls until the time is over, and waits for the last answers.
func (l *load) run(ctx context.Context) error {
	l.begin = time.Now()
	var generators sync.WaitGroup
	for i, s := range l.stage.sessions {
		generators.Go(func() { l.generate(ctx, s, i) })
	}
	generators.Wait()
	l.callers.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return l.failed
}

// generate offers the share of one session.
func (l *load) generate(ctx context.Context, s *asterisque.Session, n int) {
	free := [2]chan struct{}{make(chan struct{}, normalCallers), make(chan struct{}, urgentCallers)}
	between := time.Duration(float64(clients) / l.rate * float64(time.Second))
	due := l.begin.Add(between * time.Duration(n) / clients) // not all sessions at once
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for i := n * urgentEvery / clients; due.Before(l.begin.Add(l.warmUp + l.measure)); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for now := time.Now(); due.Before(now); due, i = due.Add(between), i+1 {
			class := 0
			if i%urgentEvery == 0 {
				class = 1
			}
			l.offer(ctx, s, due, class, free[class])
		}
	}
}

// offer makes a free caller make the call that is due, if there is one.
func (l *load) offer(ctx context.Context, s *asterisque.Session, due time.Time, class int, free chan struct{}) {
	counts := l.counts(due)
	if counts {
		l.offered.Add(1)
	}
	select {
	case free <- struct{}{}:
	default:
		if counts {
			l.lost.Add(1)
		}
		return
	}
	l.callers.Go(func() {
		defer func() { <-free }()
		err := l.reaction.call(ctx, s, asterisque.WithPriority(priorities[class]))
		l.note(err, due, class, counts)
	})
}

// counts reports whether t is within the measured time.
func (l *load) counts(t time.Time) bool {
	at := t.Sub(l.begin)
	return at >= l.warmUp && at < l.warmUp+l.measure
}

// note records the outcome of a call.
func (l *load) note(err error, due time.Time, class int, counts bool) {
	now := time.Now()
	if errors.Is(err, asterisque.ErrOverloaded) {
		if counts {
			l.refused.Add(1)
		}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		if l.failed == nil {
			l.failed = fmt.Errorf("a call failed: %w", err)
		}
		return
	case counts:
		l.answered[class] = append(l.answered[class], now.Sub(due))
	}
	if l.counts(now) {
		l.inTime++
	}
}

// goodput returns how many calls were answered each second.
func (l *load) goodput() float64 { return float64(l.inTime) / l.measure.Seconds() }
