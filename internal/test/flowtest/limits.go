package flowtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// largeMessage makes one call with parameters that exceed the default limits, and small calls after
// it.
func largeMessage(size int) func(scenarioPlay) {
	return func(p scenarioPlay) {
		there := newService()
		there.Handle(measure, "measure", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
			return numbered(len(params), 4), nil
		})
		s := p.begin(setup{both: []asterisque.Option{asterisque.WithLimits(asterisque.Limits{MaxMessage: size + size/4})}, here: newService(), there: there})
		s.finish(s.start(fmt.Sprintf("call with %d MiB", size/mib), 1, 1, func(int) error {
			got, err := s.dialled.Call(s.ctx, measure, make([]byte, size))
			if err == nil && number(got) != size {
				err = fmt.Errorf("%d bytes arrived", number(got))
			}
			return s.passesOrIsRefused(err)
		}))
		s.echoes(10)
		s.over()
	}
}

// largerThanLimits makes calls that are larger than the outbound limit.
func largerThanLimits(p scenarioPlay) {
	outbound := limits.Limits{Soft: limits.Amount{Bytes: 64 * kib}, Hard: limits.Amount{Bytes: 128 * kib}}
	s := p.begin(setup{both: []asterisque.Option{asterisque.WithLimits(asterisque.Limits{Outbound: outbound})}, here: newService(), there: newService()})
	s.finish(s.start("echoes of 1 MiB", 2, 2, func(i int) error { return s.passesOrIsRefused(s.echo(s.dialled, i, mib)) }))
	s.echoes(10)
	s.over()
}

// passesOrIsRefused accepts that a call is rejected as too large.
func (s *scenarioStage) passesOrIsRefused(err error) error {
	if errors.Is(err, asterisque.ErrTooLarge) {
		s.Logf("refused: %v", err)
		return nil
	}
	return err
}

// shutdowns shuts a session down under load, repeatedly, with many workers, with few, and over a
// slow link.
func shutdowns(rounds int) func(scenarioPlay) {
	return func(p scenarioPlay) {
		for _, c := range []struct{ workers, link, size int }{{1024, 0, 16}, {8, 0, 16}, {64, 2_000_000, 4 * kib}} {
			var total callCounts
			for range rounds {
				total.add(shutdown(p, c.workers, c.link, c.size))
			}
			p.Logf("%d workers, %d bytes/s: %v", c.workers, c.link, total)
			if total.wrong() > 0 {
				p.Errorf("%d workers, %d bytes/s: %v", c.workers, c.link, total)
			}
		}
	}
}

// callCounts counts the failed calls, and the violations.
type callCounts struct {
	// failed calls that ran, and those of them that are Repeatable
	ran, ranRepeatable     int
	never, neverRepeatable int // failed calls that never ran, and those of them that are Repeatable
	lost                   int // calls that succeeded, and did not run exactly once
}

func (o *callCounts) add(p callCounts) {
	o.ran += p.ran
	o.ranRepeatable += p.ranRepeatable
	o.never += p.never
	o.neverRepeatable += p.neverRepeatable
	o.lost += p.lost
}

func (o callCounts) wrong() int { return o.ranRepeatable + o.never - o.neverRepeatable + o.lost }

func (o callCounts) String() string {
	return fmt.Sprintf("of the calls that failed, %d ran, %d of them Repeatable; %d never ran, %d of them Repeatable; %d that succeeded did not run once",
		o.ran, o.ranRepeatable, o.never, o.neverRepeatable, o.lost)
}

// ledger records which calls ran, and how each ended.
type ledger struct {
	mu     sync.Mutex
	ran    map[int]int   // guarded by mu: call -> number of executions
	failed map[int]error // guarded by mu: call -> error; nil if it succeeded
}

func (l *ledger) begin(id int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ran[id]++
}

func (l *ledger) has(id int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ran[id] > 0
}

func (l *ledger) end(id int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed[id] = err
}

func (l *ledger) outcome() (o callCounts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, err := range l.failed {
		ran, repeatable := l.ran[id], err != nil && asterisque.Repeatable(err)
		switch {
		case err == nil && ran != 1, ran > 1:
			o.lost++
		case err == nil:
		case ran == 1:
			o.ran++
			o.ranRepeatable += one(repeatable)
		default:
			o.never++
			o.neverRepeatable += one(repeatable)
		}
	}
	return o
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// shutdown is one round: a hundred callers continue until the other side has shut down.
func shutdown(p scenarioPlay, workers, link, size int) callCounts {
	const callers, before = 100, 300
	l := &ledger{ran: map[int]int{}, failed: map[int]error{}}
	there := newService()
	there.Handle(count, "count", func(ctx context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
		l.begin(number(params))
		time.Sleep(time.Millisecond) //nolint:forbidigo // the work of the call
		if number(params)%7 == 0 {
			// the same error as for calls that never ran
			return nil, asterisque.ErrUnavailable
		}
		return nil, nil
	})
	s := p.begin(setup{both: []asterisque.Option{asterisque.WithWorkers(asterisque.Workers{Session: workers})}, there: there, link: link})
	defer s.end()
	var ids, answered atomic.Int64
	work := s.start("callers", callers, callers, func(int) error {
		for {
			id := int(ids.Add(1))
			_, err := s.dialled.Call(s.ctx, count, numbered(id, size))
			l.end(id, err)
			if err != nil && !l.has(id) {
				return nil
			}
			answered.Add(1)
		}
	})
	s.until("calls were answered before the shutdown", before, func() int { return int(answered.Load()) })
	down := s.start("shutdown", 1, 1, func(int) error { return s.accepted.Shutdown(s.ctx) })
	s.finish(down, work)
	s.end()
	return l.outcome()
}
