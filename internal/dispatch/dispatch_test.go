package dispatch

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/internal/test/statetest"
	"github.com/asterisque-go/asterisque/limits"
)

// fakeJob is a call without a session.
type fakeJob struct {
	d       *Dispatcher
	g       *ConcurrencyLimit
	keys    *KeyedOrder
	place   *Turn
	handle  func()
	refused func(*codec.Abort)
	work    Task
}

func (j *fakeJob) Dispatcher() *Dispatcher    { return j.d }
func (j *fakeJob) Task() *Task                { return &j.work }
func (j *fakeJob) Limit() *ConcurrencyLimit   { return j.g }
func (j *fakeJob) Turn() (*KeyedOrder, *Turn) { return j.keys, j.place }
func (j *fakeJob) OnlyWaits() bool            { return false }
func (j *fakeJob) Weight() int                { return 0 }
func (j *fakeJob) Cost() uint64               { return 0 }
func (j *fakeJob) Begin(flow.Window)          {}
func (j *fakeJob) Unlist()                    {}
func (j *fakeJob) Refuse(a *codec.Abort)      { j.refused(a) }
func (j *fakeJob) Abandon()                   {}

func (j *fakeJob) Run(*Workspace) {
	if j.handle != nil {
		j.handle()
	}
}

// waitingJob returns a job that the dispatcher has accepted.
func waitingJob() *fakeJob { return &fakeJob{work: Task{state: forKey}} }

// newDispatcher returns a dispatcher without workers of its own: admitted calls stay in their
// queue.
func newDispatcher() *Dispatcher {
	d := &Dispatcher{plan: new(flow.Plan), scheduler: new(Scheduler), jobs: waitingJobs{ready: newJobQueue(taskToWorker)}}
	d.room.owner = new(quota.Owner)
	d.scheduler.nested.Max, d.scheduler.nested.Owners = 10, new(quota.Owners)
	return d
}

// TestTask_States compares the transitions with a table.
func TestTask_States(t *testing.T) {
	queued := map[event]State{
		taskToLimit: forLimit, taskTaken: forKey, taskBegunLent: lent, taskWithdrawn: over,
	}
	statetest.Steps[State, event]{
		Arriving: {taskAccepted: forKey, taskBegunInline: running, taskWithdrawn: over},
		forKey: {
			taskToWorker: forWorker, taskToRoom: forRoom, taskToLimit: forLimit,
			taskBegun: running, taskBegunLent: lent, taskWithdrawn: over,
		},
		forWorker: queued,
		forRoom:   queued,
		forLimit:  {taskTaken: forKey, taskBegunLent: lent, taskWithdrawn: over},
		running:   {taskReturned: over},
		lent:      {taskReturned: over},
	}.Check(t, over, taskWithdrawn, State.next)
	for s := State(0); s <= over; s++ {
		require.Equal(t, s >= forKey && s <= forLimit, s.Waits())
	}
}

// TestTurn_States compares the transitions with a table.
func TestTurn_States(t *testing.T) {
	statetest.Steps[turnState, turnEvent]{
		turnOutside: {turnEnters: turnWaiting, turnBegins: turnFirst, turnLeaves: turnLeft},
		turnWaiting: {turnBegins: turnFirst, turnLeaves: turnLeft},
		turnFirst:   {turnLeaves: turnLeft},
	}.Check(t, turnLeft, turnLeaves, turnState.next)
}

// TestTurn_LeftBeforeEntered has the caller cancel while the key of its call is being computed:
// later calls of the key are not blocked.
func TestTurn_LeftBeforeEntered(t *testing.T) {
	k := KeyedOrder{last: make(map[uint64]*Turn)}
	early, late := &Turn{key: 1}, &Turn{key: 1}
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
	g := &ConcurrencyLimit{free: 2}
	d := newDispatcher()
	for range 5 {
		c := &fakeJob{d: d, g: g, work: Task{state: forKey}}
		d.passLocked(c)
	}
	require.Equal(t, 3, d.jobs.limited[g].jobs.len())

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
	require.Equal(t, 2, d.jobs.ready.len(), "as many as have left")
	require.Equal(t, 1, d.jobs.limited[g].jobs.len())
}

// TestConcurrency_NestedCountsOnce has another call wait for the end of a nested call, which counts
// once at its concurrency limit.
func TestConcurrency_NestedCountsOnce(t *testing.T) {
	g := new(ConcurrencyLimit)
	d := newDispatcher()
	c := &fakeJob{d: d, g: g, work: Task{state: forKey, Nested: true}}
	require.False(t, d.passLocked(c))
	require.Equal(t, 1, g.urgent)
	d.lend(c)
	require.Equal(t, 1, g.urgent, "it was urgent before")
	require.Zero(t, d.room.urged)
}

// TestConcurrency_LendsForUrgent checks that calls with a place that wait get a lent worker while
// an urgent call waits behind them, whether they waited for the place or not.
func TestConcurrency_LendsForUrgent(t *testing.T) {
	g := new(ConcurrencyLimit)
	d := newDispatcher()
	wait := func() *fakeJob {
		j := &fakeJob{d: d, work: Task{state: forKey}}
		d.jobs.ready.push(j)
		return j
	}
	never, has, urgent := wait(), wait(), wait()
	urged := func() (all []bool) {
		for _, j := range []*fakeJob{never, has, urgent} {
			all = append(all, j.work.urged)
		}
		return all
	}
	require.True(t, g.waitsInside(never))
	require.False(t, g.passed(has, false))
	g.lend()
	require.Equal(t, []bool{false, false, false}, urged(), "no call is behind them")
	g.countUrgent(1)
	require.False(t, g.waitsInside(wait()), "it must not wait")
	g.waitsNoMore(never)
	g.lend()
	require.Equal(t, []bool{false, true, false}, urged())
	require.False(t, g.passed(urgent, true), "the last one that was urgent")
	g.lend()
	require.Equal(t, []bool{false, true, false}, urged())
}

// TestRough_Precision bounds the error of rounding by a thousandth.
func TestRough_Precision(t *testing.T) {
	for n := 0; n < 1<<30; n += 1 + n/777 {
		got := Round16(n).Bytes()
		require.GreaterOrEqual(t, got, n)
		require.LessOrEqual(t, got, n+n/1000)
	}
	require.Equal(t, 1<<30, Round16(math.MaxInt).Bytes())
	require.Zero(t, Round16(-1).Bytes())
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

// noOutput is a peer that takes all.
type noOutput struct{}

func (noOutput) Grant(uint64)           {}
func (noOutput) WaitOutbound()          {}
func (noOutput) MustWaitOutbound() bool { return false }

// session is a dispatcher with workers, and the names of its calls in the order of their runs.
type session struct {
	Dispatcher
	order chan string
}

func newSession(t *testing.T, workers int, c SchedulerConfig) *session {
	plan, err := flow.NewPlan(limits.Amount{Bytes: 1 << 20}, 64<<10, workers)
	require.NoError(t, err)
	owners := new(quota.Owners)
	owners.Init(0)
	c.Owners, c.Nested = owners, 10
	s := &session{order: make(chan string, 100)}
	all := new(Scheduler)
	all.Init(c)
	t.Cleanup(all.End)
	s.Init(Config{Scheduler: all, Output: noOutput{}, Owner: owners.Join(quota.NameOf("peer", "", nil), "peer"), Plan: &plan, Windows: flow.NewBudget(&plan)})
	return s
}

// put puts a call that reports its name when it runs, or when it is rejected.
func (s *session) put(name string, j *fakeJob) {
	j.d = &s.Dispatcher
	if j.handle == nil {
		j.handle = func() { s.order <- name }
	}
	j.refused = func(a *codec.Abort) { s.order <- name + " rejected" }
	s.Put(j)
}

// block puts a call that occupies a worker until the returned function is called.
func (s *session) block(j *fakeJob) (release func()) {
	begun, over := make(chan struct{}), make(chan struct{})
	j.handle = func() { close(begun); <-over }
	s.put("", j)
	<-begun
	return func() { close(over) }
}

func (s *session) requireOrder(t *testing.T, want ...string) {
	t.Helper()
	for _, name := range want {
		require.Equal(t, name, <-s.order)
	}
}

func TestPut_PriorityThenArrival(t *testing.T) {
	s := newSession(t, 1, SchedulerConfig{})
	release := s.block(new(fakeJob))
	for _, name := range []string{"first", "second"} {
		s.put(name, new(fakeJob))
	}
	s.put("urgent", &fakeJob{work: Task{Priority: 1}})
	release()
	s.requireOrder(t, "urgent", "first", "second")
}

func TestPut_RejectsLeastUrgent(t *testing.T) {
	s := newSession(t, 1, SchedulerConfig{Waiting: 1})
	release := s.block(new(fakeJob))
	s.put("first", new(fakeJob))
	s.put("second", new(fakeJob))
	s.requireOrder(t, "second rejected")
	s.put("urgent", &fakeJob{work: Task{Priority: 1}})
	s.requireOrder(t, "first rejected")
	release()
	s.requireOrder(t, "urgent")
}

func TestPut_NestedNeedsNoWorker(t *testing.T) {
	s := newSession(t, 1, SchedulerConfig{Workers: 1, Waiting: 1})
	release := s.block(new(fakeJob))
	defer release()
	s.put("nested", &fakeJob{work: Task{Nested: true}})
	s.requireOrder(t, "nested")
}

func TestPut_KeyedOrder(t *testing.T) {
	s, keys := newSession(t, 4, SchedulerConfig{}), new(KeyedOrder)
	keyed := func(key uint64) *fakeJob {
		j := &fakeJob{keys: keys}
		j.place = NewTurn(key, j)
		return j
	}
	release := s.block(keyed(1))
	s.put("same key", keyed(1))
	s.put("same key, later", keyed(1))
	s.put("other key", keyed(2))
	s.requireOrder(t, "other key")
	release()
	s.requireOrder(t, "same key", "same key, later")
	require.Eventually(t, func() bool { return keys.Len() == 0 }, time.Minute, time.Millisecond)
}

func TestPut_ConcurrencyLimit(t *testing.T) {
	s, g := newSession(t, 4, SchedulerConfig{}), NewConcurrencyLimit(1)
	release := s.block(&fakeJob{g: g})
	s.put("waits", &fakeJob{g: g})
	canceled := &fakeJob{g: g}
	s.put("canceled", canceled)
	s.put("unlimited", new(fakeJob))
	s.requireOrder(t, "unlimited")
	require.True(t, s.Withdraw(canceled).Waits())
	release()
	s.requireOrder(t, "waits")
	require.Eventually(t, func() bool { free, waiting := g.State(); return free == 1 && waiting == 0 }, time.Minute, time.Millisecond)
}

// Blocks that no application waits for hold at most an eighth of the room for running calls.
func TestReserve_AnEighth(t *testing.T) {
	s := newSession(t, 1, SchedulerConfig{})
	most := s.plan.Room / 8
	require.True(t, s.Reserve(most-10))
	require.False(t, s.Reserve(11))
	require.True(t, s.Reserve(10))
	s.Reserve(-most)
	require.True(t, s.Reserve(most))
	s.Reserve(-most)
	s.Hold(s.plan.Room - 5)
	require.False(t, s.Reserve(10), "running calls hold the rest")
	require.True(t, s.Reserve(5))
}
