package priority

import (
	"math"

	"github.com/asterisque-go/asterisque/internal/fifo"
)

// quantum is the number of bytes a flow may send in its turn before the next flow of its priority has one. It is large enough that most turns
// send something, and small enough that a hundred bulk flows still take turns within a few milliseconds.
const quantum = 16 << 10

// Queue holds messages until they may leave: the highest priority first; within a flow in the order of Push; between flows of one priority
// in turn, fair by bytes (deficit round robin, Shreedhar and Varghese 1995). Push and Pop take constant time whatever the number of flows and priorities.
//
// The zero Queue is empty and strict: a lower priority waits until no higher one is left. [Queue.Guard] lets it move a little. A Queue is not safe for
// concurrent use.
type Queue[T any] struct {
	rounds [pages]*[pageSize]round[T] // by level; a page is nil until its first Push
	used   set
	len    int

	share float64 // part of the bytes that lower priorities get; 0 is strict
	owed  float64 // bytes that lower priorities have earned
	last  int     // the level that the guard served last
}

// Flow is the place of one pipe in a Queue. The zero Flow is empty, and stays small until something has to wait. It belongs to one Queue while it holds messages.
type Flow[T any] struct {
	Priority Priority // must not change while the flow holds messages

	line *line[T] // nil until the first Push
}

// line is the messages of one flow in their order.
type line[T any] struct {
	items   fifo.Queue[item[T]]
	deficit int      // bytes left of this turn
	next    *line[T] // in the round, while queued
	queued  bool
}

type item[T any] struct {
	value T
	size  int
}

// round is the circle of lines of one priority that hold messages; a line that was emptied by Clear leaves it at its next turn.
type round[T any] struct {
	first, last *line[T]
}

// Guard gives lower priorities part of the bytes while higher ones are busy: 0.05 means that of 100 bytes about 5 belong to the levels below the highest,
// in turn. 0 is strict. The share is clamped to 0..0.5.
func (q *Queue[T]) Guard(share float64) { q.share = min(max(share, 0), 0.5) }

// Len returns the number of messages that wait.
func (q *Queue[T]) Len() int { return q.len }

// Push appends v to f, as size bytes.
func (q *Queue[T]) Push(f *Flow[T], v T, size int) {
	if f.line == nil {
		f.line = new(line[T])
	}
	n := f.line
	n.items.Push(item[T]{v, size})
	q.len++
	if n.queued {
		return
	}
	l := level(f.Priority)
	page := &q.rounds[l/pageSize]
	if *page == nil {
		*page = new([pageSize]round[T])
	}
	n.queued, n.deficit = true, quantum
	(*page)[l%pageSize].append(n)
	q.used.add(l)
}

// Pop removes and returns the message whose turn it is; ok is false when none waits.
func (q *Queue[T]) Pop() (v T, ok bool) { return q.PopAtMost(math.MaxInt) }

// PopAtMost is Pop, if the message whose turn it is has no more than size bytes. Otherwise it stays the next one, and ok is false.
func (q *Queue[T]) PopAtMost(size int) (v T, ok bool) {
	for q.len > 0 {
		top := q.used.highest(levels)
		l := top
		if low := q.guarded(top); low >= 0 {
			l = low
		}
		n := q.ready(l)
		if n == nil {
			continue // the level held only cleared flows, and is unused now
		}
		if n.items.Peek().size > size {
			return v, false
		}
		it := q.take(n, l)
		q.owed = min(q.owed+float64(it.size)*q.share, quantum)
		if l != top {
			q.owed -= float64(it.size)
			q.last = l
		}
		return it.value, true
	}
	return v, false
}

// Clear removes all messages of f and hands each to drop, oldest first.
func (q *Queue[T]) Clear(f *Flow[T], drop func(T)) {
	if f.line == nil {
		return
	}
	q.len -= f.Len()
	for _, it := range f.line.items.Reset() {
		drop(it.value)
	}
}

// Filter removes every message for which keep returns false. It takes time in proportion to what waits.
func (q *Queue[T]) Filter(keep func(*T) bool) {
	for l := q.used.highest(levels); l >= 0; l = q.used.highest(l) {
		for n := q.rounds[l/pageSize][l%pageSize].first; n != nil; n = n.next {
			q.len -= n.items.Filter(func(it *item[T]) bool { return keep(&it.value) })
		}
	}
}

// Len returns the number of messages of f that wait.
func (f *Flow[T]) Len() int {
	if f.line == nil {
		return 0
	}
	return f.line.items.Len()
}

// guarded returns the level below top whose turn the guard grants, or -1.
func (q *Queue[T]) guarded(top int) int {
	if q.share == 0 || q.owed < quantum/4 {
		return -1
	}
	if l := q.used.highest(min(q.last, top)); l >= 0 {
		return l
	}
	return q.used.highest(top) // the lowest had its turn: start again below the top
}

// ready returns the line of level l whose turn it is. It returns nil, and marks the level unused, when its flows hold nothing.
func (q *Queue[T]) ready(l int) *line[T] {
	r := &q.rounds[l/pageSize][l%pageSize]
	for n := r.first; n != nil; n = r.first {
		switch {
		case n.items.Len() == 0:
			r.shift()
			n.queued = false
		case n.items.Peek().size > n.deficit:
			r.shift()
			n.deficit += quantum
			r.append(n)
		default:
			return n
		}
	}
	q.used.remove(l)
	return nil
}

// take removes the first message of n, which is the line of level l whose turn it is.
func (q *Queue[T]) take(n *line[T], l int) item[T] {
	it := n.items.Pop()
	n.deficit -= it.size
	q.len--
	if n.items.Len() == 0 {
		r := &q.rounds[l/pageSize][l%pageSize]
		r.shift()
		n.queued = false
		if r.first == nil {
			q.used.remove(l)
		}
	}
	return it
}

func (r *round[T]) append(n *line[T]) {
	n.next = nil
	if r.last == nil {
		r.first = n
	} else {
		r.last.next = n
	}
	r.last = n
}

func (r *round[T]) shift() {
	r.first = r.first.next
	if r.first == nil {
		r.last = nil
	}
}
