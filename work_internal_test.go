package asterisque

import (
	"context"
	"encoding/binary"
	"flag"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// steps are the states that follow one state, by event; missing events are impossible.
type steps[S, E comparable] map[S]map[E]S

// check compares next with the steps, for all states and events.
func (want steps[S, E]) check(t *testing.T, states []S, events []E, next func(S, E) (S, bool)) {
	t.Helper()
	for _, s := range states {
		for _, e := range events {
			to, can := want[s][e]
			got, ok := next(s, e)
			require.Equal(t, can, ok, "%v in %v", e, s)
			if can {
				require.Equal(t, to, got, "%v in %v", e, s)
			}
		}
	}
}

// upTo returns all values from 0 to last.
func upTo[T ~uint8](last T) (all []T) {
	for v := T(0); v <= last; v++ {
		all = append(all, v)
	}
	return all
}

// TestTask_States compares the transitions with a table.
func TestTask_States(t *testing.T) {
	queued := map[taskEvent]taskState{
		taskToLimit: taskForLimit, taskTaken: taskForKey, taskBegunLent: taskLent, taskWithdrawn: taskOver,
	}
	steps[taskState, taskEvent]{
		taskArriving: {taskAccepted: taskForKey, taskBegunInline: taskRunning, taskWithdrawn: taskOver},
		taskForKey: {
			taskToWorker: taskForWorker, taskToRoom: taskForRoom, taskToLimit: taskForLimit,
			taskBegun: taskRunning, taskBegunLent: taskLent, taskWithdrawn: taskOver,
		},
		taskForWorker: queued,
		taskForRoom:   queued,
		taskForLimit:  {taskTaken: taskForKey, taskBegunLent: taskLent, taskWithdrawn: taskOver},
		taskRunning:   {taskReturned: taskOver},
		taskLent:      {taskReturned: taskOver},
	}.check(t, upTo(taskOver), upTo(taskWithdrawn), taskState.next)
	for _, s := range upTo(taskOver) {
		require.Equal(t, s >= taskForKey && s <= taskForLimit, s.waits())
	}
}

// TestTurn_States compares the transitions with a table.
func TestTurn_States(t *testing.T) {
	steps[keyTurnState, keyTurnEvent]{
		turnOutside: {turnEnters: turnWaiting, turnBegins: turnFirst, turnLeaves: turnLeft},
		turnWaiting: {turnBegins: turnFirst, turnLeaves: turnLeft},
		turnFirst:   {turnLeaves: turnLeft},
	}.check(t, upTo(turnLeft), upTo(turnLeaves), keyTurnState.next)
}

// TestDurableAnswer_States compares the transitions with a table.
func TestDurableAnswer_States(t *testing.T) {
	steps[durableState, durableEvent]{
		durableWaiting: {
			durableBegins: durableRunning, durableOutlives: durableAlone, durableEnds: durableAnswered,
			durablePasses: durableWaiting, durableDropped: durableForgotten,
		},
		durableRunning: {
			durableOutlives: durableAlone, durableEnds: durableAnswered,
			durablePasses: durableWaiting, durableDropped: durableForgotten,
		},
		durableAlone: {
			durableBegins: durableAlone, durableCancel: durableRunning, durableEnds: durableAnswered,
			durablePasses: durableWaiting, durableDropped: durableForgotten,
		},
		durableAnswered: {durableLapses: durableForgotten},
	}.check(t, upTo(durableForgotten), upTo(durableLapses), durableState.next)
}

// TestTurn_LeftBeforeEntered has the caller cancel while the key of its call is being computed:
// later calls of the key are not blocked.
func TestTurn_LeftBeforeEntered(t *testing.T) {
	k := keyedOrder{last: make(map[uint64]*keyTurn)}
	early, late := &keyTurn{key: 1}, &keyTurn{key: 1}
	next, _ := k.leave(early)
	require.Nil(t, next)
	first, _ := k.enter(early)
	require.False(t, first, "it has left")
	first, _ = k.enter(late)
	require.True(t, first)
	k.leave(late)
	require.Empty(t, k.last)
}

// TestJobQueue_SkipsLeft lends a worker to a waiting call: its entry stays in the queue, and is
// skipped.
func TestJobQueue_SkipsLeft(t *testing.T) {
	q := newJobQueue(taskToWorker)
	gone, stays := &inboundCall{work: task{state: taskForKey}}, &inboundCall{work: task{state: taskForKey}}
	q.push(gone)
	q.push(stays)
	require.True(t, gone.work.moveLocked(taskBegunLent))
	q.noteGone()
	require.Equal(t, 1, q.len())
	require.Same(t, stays, q.pop())
	require.Nil(t, q.pop())
	require.Zero(t, q.len())
}

// TestKeys_CostNothingAfterUse makes calls with different keys, of which none is remembered.
func TestKeys_CostNothingAfterUse(t *testing.T) {
	distinct := 30_000
	if f := flag.Lookup("soak"); f != nil && f.Value.String() == "true" {
		distinct = 2_000_000
	}
	svc := NewService()
	svc.Handle(1, "keyed", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return nil, nil },
		WithKey(func(params []byte) uint64 { return binary.BigEndian.Uint64(params) }), WithConcurrency(4))
	here, there := NewNode(), NewNode(WithService(svc))
	defer here.Close()
	defer there.Close()
	a, b := wire.Pipe()
	go there.Accept(context.Background(), b)
	s, err := here.Attach(context.Background(), a)
	require.NoError(t, err)

	const callers = 16
	use := func(from, to int) {
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for n := from + i; n < to; n += callers {
					if _, err := s.Call(context.Background(), 1, binary.BigEndian.AppendUint64(nil, uint64(n))); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	use(0, 5000)
	before, goroutines := weightest.Heap(), runtime.NumGoroutine()
	use(5000, distinct)
	// memory of other tests may be released meanwhile
	require.LessOrEqual(t, weightest.HeldSince(before, 512<<10), 512<<10)
	require.InDelta(t, goroutines, runtime.NumGoroutine(), callers)

	here.Close() // no call runs afterwards
	there.Close()
	h := svc.find(1)
	require.Eventually(t, func() bool { h.key.keys.mu.Lock(); defer h.key.keys.mu.Unlock(); return len(h.key.keys.last) == 0 }, waitForWorkers, tick)
	h.limit.mu.Lock()
	defer h.limit.mu.Unlock()
	require.Equal(t, 4, h.limit.free)
	require.Zero(t, h.limit.queue.len())
}

// TestConcurrency_PlaceBetweenTurns has two calls leave at the same time, the second one while the
// queue is empty because the first one's turn is being taken: its place is not lost.
func TestConcurrency_PlaceBetweenTurns(t *testing.T) {
	g := &concurrencyLimit{free: 2}
	// without workers: admitted calls stay in their queue
	s := &Session{shared: new(sharedState)}
	d := &s.calls
	d.plan, d.scheduler, d.ready = new(limits.Plan), new(scheduler), newJobQueue(taskToWorker)
	for range 5 {
		c := &inboundCall{callTransport: callTransport{x: &s.sessionCalls}, handler: &functionHandler{limit: g}, work: task{state: taskForKey}}
		d.passLocked(c)
	}
	require.Equal(t, 3, d.limited[g].jobs.len())

	p := g.next() // the first one leaves
	g.vacate()    // and meanwhile the second
	require.Equal(t, 1, g.free)
	ok, another := d.admit(g, p)
	require.True(t, ok)
	require.True(t, another, "the free place is the next one's")
	require.Zero(t, g.free)
	ok, another = d.admit(g, g.next())
	require.True(t, ok)
	require.False(t, another)
	require.Equal(t, 2, d.ready.len(), "as many as have left")
	require.Equal(t, 1, d.limited[g].jobs.len())
}

// TestConcurrency_NestedCountsOnce has another call wait for the end of a nested call, which counts
// once at its concurrency limit.
func TestConcurrency_NestedCountsOnce(t *testing.T) {
	g := new(concurrencyLimit)
	s := &Session{shared: new(sharedState)}
	d := &s.calls
	d.plan, d.scheduler, d.ready = new(limits.Plan), new(scheduler), newJobQueue(taskToWorker)
	d.room.owner, d.scheduler.nested.Max = new(quota.Owner), 10
	c := &inboundCall{callTransport: callTransport{x: &s.sessionCalls}, handler: &functionHandler{limit: g}, work: task{state: taskForKey, nested: true}}
	require.False(t, d.passLocked(c))
	require.Equal(t, 1, g.urgent)
	d.lend(c)
	require.Equal(t, 1, g.urgent, "it was urgent before")
	require.Zero(t, d.room.urged)
}

// loan counts how often a worker was lent to it.
type loan int

func (l *loan) queue() {}
func (l *loan) lend()  { *l++ }

// TestConcurrency_LendsForUrgent checks that calls with a place that wait get a lent worker while
// an urgent call waits behind them, whether they waited for the place or not.
func TestConcurrency_LendsForUrgent(t *testing.T) {
	g := new(concurrencyLimit)
	var never, has loan
	require.True(t, g.waitsInside(&never))
	require.False(t, g.passed(&has, false))
	g.lend()
	require.Zero(t, never+has, "nobody is behind them")
	g.countUrgent(1)
	require.False(t, g.waitsInside(new(loan)), "it must not wait")
	g.lend()
	require.Equal(t, []loan{1, 1}, []loan{never, has})
	g.waitsNoMore(&never)
	g.lend()
	require.Equal(t, []loan{1, 2}, []loan{never, has})
	var urgent loan
	require.False(t, g.passed(&urgent, true), "the last one that was urgent")
	g.lend()
	require.Equal(t, []loan{1, 2, 0}, []loan{never, has, urgent})
}

// TestRough_Precision bounds the error of rounding by a thousandth.
func TestRough_Precision(t *testing.T) {
	for n := 0; n < 1<<30; n += 1 + n/777 {
		got := roughly(n).bytes()
		require.GreaterOrEqual(t, got, n)
		require.LessOrEqual(t, got, n+n/1000)
	}
	require.Equal(t, 1<<30, roughly(math.MaxInt).bytes())
	require.Zero(t, roughly(-1).bytes())
}

// TestExpansion_NoOverflow has bounds beyond the range of an int of 32 bits.
func TestExpansion_NoOverflow(t *testing.T) {
	e := expansion{times: 1 << 30, plus: 1 << 20}
	require.Equal(t, 1<<20, e.of(0))
	require.Positive(t, e.of(1<<30))
}

// The longest wait of a test for workers, and the interval of its checks.
const (
	waitForWorkers = 2 * time.Minute
	tick           = time.Millisecond
)

// TestWorkers_EndDuringTrim ends the workers when the timer has fired, before its function begins.
func TestWorkers_EndDuringTrim(t *testing.T) {
	w := new(workers)
	for range 3 {
		w.idle = append(w.idle, &worker{shifts: make(chan workSource, 1)})
	}
	w.fewest, w.timer = 2, time.AfterFunc(time.Hour, w.trim)
	w.end()
	require.NotPanics(t, w.trim)
	require.Empty(t, w.idle)
	require.Nil(t, w.timer)
}

// TestPace_PausesAboveRate pauses only events above the rate.
func TestPace_PausesAboveRate(t *testing.T) {
	var p rateLimit
	now := time.Second
	for range givenUpBurst {
		require.Zero(t, p.pause(now), "at once")
	}
	waited := time.Duration(0)
	const more = 20_000
	for range more {
		d := p.pause(now)
		now += d
		waited += d
	}
	require.InDelta(t, more*givenUpEach, waited, float64(givenUpPause), "at the rate")
	now += 1000 * time.Hour // due wraps meanwhile
	for range givenUpBurst {
		require.Zero(t, p.pause(now), "as many at once again, and no more for a longer rest")
	}
	require.InDelta(t, 0, p.pause(now), float64(givenUpPause))
}

// TestTurns_OwnersAlternate checks that owners take turns.
func TestTurns_OwnersAlternate(t *testing.T) {
	var q fairQueue[int]
	a, b, c := new(quota.Owner), new(quota.Owner), new(quota.Owner)
	for i := range 4 {
		q.push(a, 10+i)
	}
	q.push(b, 20)
	q.push(c, 30)
	q.push(c, 31)
	q.push(b, 21)
	require.Equal(t, 8, q.len())
	q.remove(c, func(v *int) bool { return *v != 30 })
	q.remove(new(quota.Owner), func(*int) bool { return false })
	got := []int{q.pop(), q.pop(), q.pop(), q.pop()}
	require.Equal(t, []int{10, 20, 31, 11}, got)
	q.push(c, 32)
	q.remove(b, func(*int) bool { return false })
	got = nil
	for q.len() > 0 {
		got = append(got, q.pop())
	}
	require.Equal(t, []int{12, 32, 13}, got)
	require.Empty(t, q.waiting)
}
