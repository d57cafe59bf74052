package asterisque

import (
	"testing"

	"github.com/stretchr/testify/require"
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
		taskToGate: taskForGate, taskTaken: taskForKey, taskBegunLent: taskLent, taskWithdrawn: taskOver,
	}
	steps[taskState, taskEvent]{
		taskArriving: {taskAccepted: taskForKey, taskBegunInline: taskRunning, taskWithdrawn: taskOver},
		taskForKey: {
			taskToWorker: taskForWorker, taskToRoom: taskForRoom, taskToGate: taskForGate,
			taskBegun: taskRunning, taskBegunLent: taskLent, taskWithdrawn: taskOver,
		},
		taskForWorker: queued,
		taskForRoom:   queued,
		taskForGate:   {taskTaken: taskForKey, taskBegunLent: taskLent, taskWithdrawn: taskOver},
		taskRunning:   {taskReturned: taskOver},
		taskLent:      {taskReturned: taskOver},
	}.check(t, upTo(taskOver), upTo(taskWithdrawn), taskState.next)
	for _, s := range upTo(taskOver) {
		require.Equal(t, s >= taskForKey && s <= taskForGate, s.waits())
	}
}

// TestTurn_States compares the transitions with a table.
func TestTurn_States(t *testing.T) {
	steps[turnState, turnEvent]{
		turnOutside: {turnEnters: turnWaiting, turnBegins: turnFirst, turnLeaves: turnLeft},
		turnWaiting: {turnBegins: turnFirst, turnLeaves: turnLeft},
		turnFirst:   {turnLeaves: turnLeft},
	}.check(t, upTo(turnLeft), upTo(turnLeaves), turnState.next)
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
	k := keys{last: make(map[uint64]*turn)}
	early, late := &turn{key: 1}, &turn{key: 1}
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
	gone, stays := &served{work: task{state: taskForKey}}, &served{work: task{state: taskForKey}}
	q.push(gone)
	q.push(stays)
	require.True(t, gone.work.moveLocked(taskBegunLent))
	q.noteGone()
	require.Equal(t, 1, q.len())
	require.Same(t, stays, q.pop())
	require.Nil(t, q.pop())
	require.Zero(t, q.len())
}
