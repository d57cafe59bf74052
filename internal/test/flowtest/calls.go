package flowtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pipe"
)

// work is how long handlers run before they call back, so that everything that can queue up has
// done so.
const work = 30 * time.Millisecond

// parameters makes many concurrent calls with large parameters. Their handlers call back.
func parameters(workers, callers, size int) func(scenarioPlay) {
	return func(p scenarioPlay) {
		there, ran, back := newService(), make(runs, callers), make(runs, callers)
		there.Handle(callBack, "call back", func(ctx context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
			ran.note(params)
			if err := pause(ctx, work); err != nil {
				return nil, err
			}
			return asterisque.SessionOf(ctx).Call(ctx, echo, params[:4])
		})
		here := asterisque.NewService()
		here.Handle(echo, "echo", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
			back.note(params)
			return params, nil
		})
		s := p.begin(setup{both: []asterisque.Option{asterisque.WithWorkers(asterisque.Workers{Session: workers})}, here: here, there: there})
		s.finish(s.start("calls", callers, callers, func(i int) error {
			got, err := s.dialled.Call(s.ctx, callBack, numbered(i, size))
			if err == nil && number(got) != i {
				err = fmt.Errorf("it got the answer of %d", number(got))
			}
			return err
		}))
		ran.once(s, "calls")
		back.once(s, "calls back")
		s.over()
	}
}

// chain is the state of a chain of calls back.
type chain struct{ ID, N int }

var next = asterisque.Func[chain, int](20, "next")

// links records the handlers of chains on both sides.
type links struct {
	ran atomic.Int64

	mu     sync.Mutex
	lowest map[int]int   // guarded by mu: chain -> the smallest N that ran
	errs   map[int]error // guarded by mu: chain -> the error of the call within that one
}

func newLinks() *links { return &links{lowest: map[int]int{}, errs: map[int]error{}} }

func (l *links) service() *asterisque.Service {
	svc := newService()
	next.Handle(svc, func(ctx context.Context, c chain) (int, error) {
		l.begin(c)
		if c.N == 0 {
			return 0, nil
		}
		n, err := next.Call(ctx, asterisque.SessionOf(ctx), chain{c.ID, c.N - 1})
		if err != nil {
			l.fail(c, err)
		}
		return n + 1, err
	})
	return svc
}

func (l *links) begin(c chain) {
	l.ran.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if n, ok := l.lowest[c.ID]; !ok || c.N < n {
		l.lowest[c.ID] = c.N
	}
}

func (l *links) fail(c chain, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lowest[c.ID] == c.N {
		l.errs[c.ID] = err
	}
}

// innermost returns the smallest N of a chain that ran, and the error of its call.
func (l *links) innermost(id int) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lowest[id], l.errs[id]
}

// start starts chains of calls back, half of them from each side. Each has an id of its own, from
// first on.
func (l *links) start(s *scenarioStage, first, callers, n int, check func(id, got int, err error) error) []*jobGroup {
	half := callers / 2
	return s.both(fmt.Sprintf("chains of %d", n), half, half, func(on *asterisque.Session, i int) error {
		id := first + 2*i
		if on == s.accepted {
			id++
		}
		got, err := next.Call(s.ctx, on, chain{id, n})
		return check(id, got, err)
	})
}

// reaches returns a check that a chain has reached its end.
func reaches(n int) func(id, got int, err error) error {
	return func(_, got int, err error) error {
		if err == nil && got != n {
			err = fmt.Errorf("it was %d deep, and not %d", got, n)
		}
		return err
	}
}

// chains starts half of the chains from each side.
func chains(workers, callers, n int) func(scenarioPlay) {
	return func(p scenarioPlay) {
		l := newLinks()
		s := p.begin(setup{both: []asterisque.Option{asterisque.WithWorkers(asterisque.Workers{Session: workers})}, here: l.service(), there: l.service()})
		s.finish(l.start(s, 0, callers, n, reaches(n))...)
		if ran, want := l.ran.Load(), int64(callers*(n+1)); ran != want {
			s.Fatalf("%d handlers ran, and not %d%s", ran, want, s.report())
		}
		s.over()
	}
}

// deepest is the maximum depth of nested calls.
const deepest = 64

// chainsTooDeep has chains that are rejected, beside shorter chains and echoes, with one worker.
func chainsTooDeep(p scenarioPlay) {
	const n, callers = 70, 4
	l := newLinks()
	s := p.begin(setup{both: []asterisque.Option{asterisque.WithWorkers(asterisque.Workers{Session: 1})}, here: l.service(), there: l.service()})
	deep := l.start(s, 0, callers, n, func(id, _ int, err error) error { return l.refused(id, n, err) })
	beside := l.start(s, callers, 2*callers, 8, reaches(8))
	s.echoes(100)
	s.finish(append(deep, beside...)...)
	s.echoes(100)
	s.over()
}

// refused checks that a chain was rejected as too deep.
func (l *links) refused(id, n int, err error) error {
	lowest, inner := l.innermost(id)
	var abort *asterisque.Abort
	switch {
	case !errors.Is(inner, asterisque.ErrOverloaded):
		return fmt.Errorf("the innermost call, number %d of %d, failed with: %v", n-lowest+1, n, inner)
	case !errors.As(err, &abort) || abort.Code != asterisque.ErrOverloaded.Code:
		return fmt.Errorf("the outermost call failed with: %v", err)
	case n-lowest != deepest:
		return fmt.Errorf("call %d within the outermost one ran, and the next was refused", n-lowest)
	}
	return nil
}

// resultCalls makes many concurrent calls with large results.
type resultCalls struct {
	calls, size int
	takes       int // duration of each handler, in milliseconds
	link        int // bytes per second
}

func (r resultCalls) run(p scenarioPlay) {
	there, ran := newService(), make(runs, r.calls)
	there.Handle(result, "result", func(ctx context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
		ran.note(params)
		err := pause(ctx, time.Duration(r.takes)*time.Millisecond)
		return numbered(number(params), r.size), err
	})
	s := p.begin(setup{here: newService(), there: there, link: r.link})
	s.finish(s.start("calls", r.calls, r.calls, func(i int) error {
		got, err := s.dialled.Call(s.ctx, result, numbered(i, 4))
		return r.check(i, got, err)
	}))
	ran.once(s, "calls")
	s.over()
}

func (r resultCalls) check(i int, got []byte, err error) error {
	if err == nil && (len(got) != r.size || number(got) != i) {
		err = fmt.Errorf("it got %d bytes, or the answer of another one", len(got))
	}
	return err
}

// durableResults loses the session while durable calls run, so that all their results exist before
// the next session begins.
func durableResults(calls, size, link int) func(scenarioPlay) {
	return func(p scenarioPlay) {
		there, ran, gate := newService(), make(runs, calls), make(chan struct{})
		var running, returned atomic.Int64
		there.Handle(durable, "durable", func(ctx context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
			ran.note(params)
			running.Add(1)
			defer returned.Add(1)
			select {
			case <-gate:
				return numbered(number(params), size), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		enough := asterisque.WithDurableAnswers(asterisque.DurableAnswers{For: 5 * time.Minute, Bytes: 2 * calls * size})
		s := p.begin(setup{both: []asterisque.Option{enough, asterisque.WithDurableAnswers(asterisque.DurableAnswers{Share: 1})}, there: there, link: link, lasting: true})
		crew := s.start("durable calls", calls, calls, func(i int) error {
			got, err := s.conn.Call(s.ctx, durable, numbered(i, 4), asterisque.WithDurable())
			return resultCalls{size: size}.check(i, got, err)
		})
		s.until("handlers run", calls, func() int { return int(running.Load()) })
		back := s.dialer.away()
		close(gate)
		for n := 0; returned.Load() < int64(calls) && n < 1000; n++ {
			// the session may have ended before
			pause(s.ctx, 5*time.Millisecond)
		}
		back()
		s.finish(crew)
		ran.once(s, "durable calls")
		if n := s.sessions.Load(); n > 2 {
			s.Fatalf("there were %d sessions, and only one Wire was cut%s", n, s.report())
		}
	}
}
