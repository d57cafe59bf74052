package asterisque

import (
	"math"
	"testing"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/internal/test/statetest"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/stretchr/testify/require"
)

// fakeJob is a call without a session.
type fakeJob struct {
	d    *dispatcher
	g    *concurrencyLimit
	work task
}

func (j *fakeJob) dispatcher() *dispatcher       { return j.d }
func (j *fakeJob) task() *task                   { return &j.work }
func (j *fakeJob) limit() *concurrencyLimit      { return j.g }
func (j *fakeJob) turn() (*keyedOrder, *keyTurn) { return nil, nil }
func (j *fakeJob) onlyWaits() bool               { return false }
func (j *fakeJob) weight() int                   { return 0 }
func (j *fakeJob) cost() uint64                  { return 0 }
func (j *fakeJob) begin(limits.Hold)             {}
func (j *fakeJob) run(*workspace)                {}
func (j *fakeJob) unlist()                       {}
func (j *fakeJob) refuse(*codec.Abort)           {}
func (j *fakeJob) abandon()                      {}

// waitingJob returns a job that the dispatcher has accepted.
func waitingJob() *fakeJob { return &fakeJob{work: task{state: taskForKey}} }

// newDispatcher returns a dispatcher without workers of its own: admitted calls stay in their queue.
func newDispatcher() *dispatcher {
	d := &dispatcher{plan: new(limits.Plan), scheduler: new(scheduler), ready: newJobQueue(taskToWorker)}
	d.room.owner = new(quota.Owner)
	d.scheduler.nested.Max, d.scheduler.nested.Owners = 10, new(quota.Owners)
	return d
}

// TestTask_States compares the transitions with a table.
func TestTask_States(t *testing.T) {
	queued := map[taskEvent]taskState{
		taskToLimit: taskForLimit, taskTaken: taskForKey, taskBegunLent: taskLent, taskWithdrawn: taskOver,
	}
	statetest.Steps[taskState, taskEvent]{
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
	}.Check(t, taskOver, taskWithdrawn, taskState.next)
	for s := taskState(0); s <= taskOver; s++ {
		require.Equal(t, s >= taskForKey && s <= taskForLimit, s.waits())
	}
}

// TestTurn_States compares the transitions with a table.
func TestTurn_States(t *testing.T) {
	statetest.Steps[keyTurnState, keyTurnEvent]{
		turnOutside: {turnEnters: turnWaiting, turnBegins: turnFirst, turnLeaves: turnLeft},
		turnWaiting: {turnBegins: turnFirst, turnLeaves: turnLeft},
		turnFirst:   {turnLeaves: turnLeft},
	}.Check(t, turnLeft, turnLeaves, keyTurnState.next)
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
	gone, stays := waitingJob(), waitingJob()
	q.push(gone)
	q.push(stays)
	require.True(t, gone.work.moveLocked(taskBegunLent))
	q.noteGone()
	require.Equal(t, 1, q.len())
	require.Same(t, stays, q.pop())
	require.Nil(t, q.pop())
	require.Zero(t, q.len())
}

// TestConcurrency_PlaceBetweenTurns has two calls leave at the same time, the second one while the
// queue is empty because the first one's turn is being taken: its place is not lost.
func TestConcurrency_PlaceBetweenTurns(t *testing.T) {
	g := &concurrencyLimit{free: 2}
	d := newDispatcher()
	for range 5 {
		c := &fakeJob{d: d, g: g, work: task{state: taskForKey}}
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
	d := newDispatcher()
	c := &fakeJob{d: d, g: g, work: task{state: taskForKey, nested: true}}
	require.False(t, d.passLocked(c))
	require.Equal(t, 1, g.urgent)
	d.lend(c)
	require.Equal(t, 1, g.urgent, "it was urgent before")
	require.Zero(t, d.room.urged)
}

// TestConcurrency_LendsForUrgent checks that calls with a place that wait get a lent worker while
// an urgent call waits behind them, whether they waited for the place or not.
func TestConcurrency_LendsForUrgent(t *testing.T) {
	g := new(concurrencyLimit)
	d := newDispatcher()
	wait := func() *fakeJob {
		j := &fakeJob{d: d, work: task{state: taskForKey}}
		d.ready.push(j)
		return j
	}
	never, has, urgent := wait(), wait(), wait()
	lent := func() (all []bool) {
		for _, j := range []*fakeJob{never, has, urgent} {
			all = append(all, j.work.urged)
		}
		return all
	}
	require.True(t, g.waitsInside(never))
	require.False(t, g.passed(has, false))
	g.lend()
	require.Equal(t, []bool{false, false, false}, lent(), "no call is behind them")
	g.countUrgent(1)
	require.False(t, g.waitsInside(wait()), "it must not wait")
	g.waitsNoMore(never)
	g.lend()
	require.Equal(t, []bool{false, true, false}, lent())
	require.True(t, has.work.state == taskLent)
	require.False(t, g.passed(urgent, true), "the last one that was urgent")
	g.lend()
	require.Equal(t, []bool{false, true, false}, lent())
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

// TestWorkers_EndDuringTrim ends the workers when the timer has fired, before its function begins.
func TestWorkers_EndDuringTrim(t *testing.T) {
	w := new(workers)
	for range 3 {
		w.idle = append(w.idle, &worker{next: make(chan workSource, 1)})
	}
	w.fewest, w.timer = 2, time.AfterFunc(time.Hour, w.trim)
	w.end()
	require.NotPanics(t, w.trim)
	require.Empty(t, w.idle)
	require.Nil(t, w.timer)
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
