package dispatch

import "github.com/asterisque-go/asterisque/priority"

// jobQueue is a queue of calls, by priority, and among equals in the order of their arrival. A call
// that leaves is only counted, and removed together with other ones, so that leaving takes constant
// time on average, for any number of calls. A queue is guarded by the lock of the dispatcher of its
// calls.
type jobQueue struct {
	enter event // event of a call that is pushed; fixed, as the next
	state State // of the waiting calls
	gone  int32 // number of jobs that have left
	jobs  priority.Lines[Job]
}

// tolerated is the minimum number of entries that have left before a queue is cleaned.
const tolerated = 32

// newJobQueue returns an empty queue that calls enter by the event enter.
func newJobQueue(enter event) jobQueue {
	state, _ := forKey.next(enter)
	return jobQueue{enter: enter, state: state}
}

// len returns the number of waiting calls. A nil queue is empty.
func (q *jobQueue) len() int {
	if q == nil {
		return 0
	}
	return q.jobs.Len() - int(q.gone)
}

func (q *jobQueue) push(j Job) {
	t := j.Task()
	t.moveLocked(q.enter)
	q.jobs.Push(t.Priority, j)
}

// first is peek, and fast for a queue that is mostly empty or nil.
func (q *jobQueue) first() Job {
	if q == nil || q.jobs.Len() == 0 {
		return nil
	}
	return q.peek()
}

// peek returns the first call, or nil if none waits.
func (q *jobQueue) peek() Job {
	for {
		_, j, ok := q.jobs.Peek()
		if !ok {
			return nil
		}
		if j.Task().state == q.state {
			return j
		}
		q.jobs.Pop()
		q.gone--
	}
}

// above reports whether a call with a priority above p waits.
func (q *jobQueue) above(p priority.Priority) bool {
	j := q.peek()
	return j != nil && j.Task().Priority > p
}

// pop removes and returns the first call, or nil if none waits.
func (q *jobQueue) pop() Job {
	for {
		j, ok := q.jobs.Pop()
		if !ok {
			return nil
		}
		if q.take(j) {
			return j
		}
	}
}

// lessUrgent removes and returns the latest of the calls with the lowest priority, if that priority
// is below p.
func (q *jobQueue) lessUrgent(p priority.Priority) Job {
	for {
		j, ok := q.jobs.PopLast(p)
		if !ok {
			return nil
		}
		if q.take(j) {
			return j
		}
	}
}

// take reports whether j, which was removed from jobs, had not left before.
func (q *jobQueue) take(j Job) bool {
	t := j.Task()
	if t.state != q.state {
		q.gone--
		return false
	}
	return t.moveLocked(taskTaken)
}

// noteGone records that a call has left.
func (q *jobQueue) noteGone() {
	if q.gone++; q.gone > tolerated && int(q.gone) > q.jobs.Len()/2 {
		q.jobs.Filter(func(j Job) bool { return j.Task().state == q.state })
		q.gone = 0
	}
}

// waitingJobs are the calls of a session that wait behind the order of their keys. They are guarded
// by the lock of the dispatcher.
type waitingJobs struct {
	ready   jobQueue                           // for a worker
	large   *jobQueue                          // in their turn, for memory; nil until there is one
	limited map[*ConcurrencyLimit]*limitedJobs // for their function
}

// limitedJobs are the calls of a session that wait for one concurrency limit.
type limitedJobs struct {
	sessionShare
	jobs jobQueue // empty only while the concurrency limit removes them
}

// isEmpty reports whether no call waits for a worker or for memory.
func (q *waitingJobs) isEmpty() bool { return q.ready.len()+q.large.len() == 0 }

// queueOf returns the queue in which j waits, or nil if it is in none.
func (q *waitingJobs) queueOf(j Job) *jobQueue {
	switch j.Task().state {
	case forWorker:
		return &q.ready
	case forRoom:
		return q.large
	case forLimit:
		return &q.limited[j.Limit()].jobs
	}
	return nil
}

// awaitMemory makes j, in its turn, wait for memory.
func (q *waitingJobs) awaitMemory(j Job) {
	if q.large == nil {
		large := newJobQueue(taskToRoom)
		q.large = &large
	}
	q.large.push(j)
}

// isBehind reports whether a call that is not small has to wait behind another one that waits
// for memory, and that may need all of it.
func (q *waitingJobs) isBehind(t *Task) bool {
	first := q.large.first()
	return first != nil && first.Task().Priority >= t.Priority && !t.small()
}

// leaveLimit removes the session share of the session at g if none of its calls waits there
// any more.
func (q *waitingJobs) leaveLimit(g *ConcurrencyLimit) {
	if jobs := q.limited[g]; jobs != nil && jobs.jobs.len() == 0 {
		delete(q.limited, g)
		g.dequeue(&jobs.sessionShare)
	}
}
