package priority

import (
	"math"
	"unsafe"

	"github.com/asterisque-go/asterisque/internal/fifo"
)

// quantum is the number of bytes a flow may send in its turn before the next flow of its priority
// has one. It is no larger than the window that each stream has at least: one that uses up such a
// window in its turn gets no less than others.
const quantum = 4 << 10

// mostOwed is how many bytes the guard owes to lower priorities at most.
const mostOwed = 16 << 10

// Queue holds messages until they may leave. The highest priority goes first. Messages of a flow
// leave in the order of Push. Flows of one priority take turns, fair by bytes (deficit round robin,
// Shreedhar and Varghese 1995). Push and Pop take constant time whatever the number of flows and
// priorities. Memory is in proportion to what waits, and to how many flows wait. Of what waited,
// some KiB are kept.
//
// The zero Queue is empty and strict: a lower priority waits until no higher one is left.
// [Queue.Guard] lets it move a little. A Queue is not safe for concurrent use.
type Queue[T any] struct {
	rounds byLevel[round[T]] // none of them is empty
	spares spares[*line[T]]
	len    int

	share float64 // part of the bytes that lower priorities get; 0 is strict
	owed  float64 // bytes that lower priorities have earned
	last  int     // the level that the guard served last
	part  int     // the level whose part has left last in its own right, +1; 0: it was no part
}

// Flow is the place of one pipe in a Queue. The zero Flow is empty, and is small unless something
// waits. It belongs to one Queue while it holds messages, and must not be copied then.
type Flow[T any] struct {
	Priority Priority // must not change while the flow holds messages

	line *line[T] // nil unless messages wait
}

// line is the messages of one flow in their order, in the round of its priority. There is at least
// one message.
type line[T any] struct {
	items      fifo.Queue[item[T]]
	deficit    int      // bytes left of this turn
	flow       *Flow[T] // nil while the line is a spare one, as are the next
	next, prev *line[T] // in the round
	parked     bool     // see round
}

type item[T any] struct {
	value T
	size  int
}

// Held returns the bytes of a spare line and of the memory that it keeps.
func (n *line[T]) Held() int {
	return int(unsafe.Sizeof(*n)-unsafe.Sizeof(n.items)) + n.items.Held()
}

// mostSpareLines is how many bytes the spare lines of a Queue may hold: one may have a whole chunk.
const mostSpareLines = 9 << 10

// Guard gives lower priorities part of the bytes while higher ones are busy: with 0.05, of 100
// bytes about 5 belong to the levels below the highest, in turn. 0 is strict. The share is clamped
// to 0..0.5.
func (q *Queue[T]) Guard(share float64) { q.share = min(max(share, 0), 0.5) }

// Len returns the number of messages that wait.
func (q *Queue[T]) Len() int { return q.len }

// Push appends v to f, as size bytes.
func (q *Queue[T]) Push(f *Flow[T], v T, size int) {
	if f.line == nil {
		q.enter(f)
	}
	f.line.items.Push(item[T]{v, size})
	q.len++
}

// enter gives f a line, which is the last one of its round and to which a message is to be added.
func (q *Queue[T]) enter(f *Flow[T]) {
	n, ok := q.spares.take()
	if !ok {
		n = new(line[T])
	}
	n.flow, n.deficit = f, quantum
	f.line = n
	q.rounds.add(level(f.Priority)).turns.append(n)
}

// leave takes n, which is empty, away from its flow and its round.
func (q *Queue[T]) leave(n *line[T]) {
	l := level(n.flow.Priority)
	r := q.rounds.at(l)
	r.remove(n)
	if r.turns.first == nil {
		q.rounds.remove(l)
	}
	n.flow.line, n.flow = nil, nil
	q.spares.put(n, mostSpareLines)
}

// Pop removes and returns the message whose turn it is; ok is false when none waits.
func (q *Queue[T]) Pop() (v T, ok bool) { return q.PopAtMost(math.MaxInt) }

// PopAtMost is Pop, if the message whose turn it is has no more than size bytes. Otherwise it stays
// the next one, and ok is false.
func (q *Queue[T]) PopAtMost(size int) (v T, ok bool) {
	return q.PopIf(func(_ *T, n int) bool { return n <= size })
}

// PopIf calls may with the message whose turn it is, and its size. If may reports true, PopIf is
// Pop. Otherwise the message stays the next one, and ok is false.
func (q *Queue[T]) PopIf(may func(v *T, size int) bool) (v T, ok bool) {
	return q.Take(math.MaxInt, func(v *T, size int) int {
		if may(v, size) {
			return size
		}
		return -1
	})
}

// Take is Pop for messages that may leave in parts: a message of more than most bytes, which count
// as so many each time. It calls take with the message whose turn it is, and its size. take returns
// how many bytes of it leave now: the message leaves with the last of them, and all is true then.
// Otherwise it stays the next one of its flow, with what is left as its size. If take returns less
// than 0, nothing leaves, and the message stays the next one.
//
// One message of each priority is under way at a time. Others of more than most bytes wait for its
// end, with what is behind them in their flows. Flows get equal bytes all the same, to within one
// message: each is charged what has left of it, and what it missed while it waited comes later.
func (q *Queue[T]) Take(most int, take func(v *T, size int) (leaves int)) (v T, all bool) {
	if q.len == 0 {
		return v, false
	}
	top := q.rounds.used.highest(levels)
	l := top
	if low := q.guarded(top); low >= 0 {
		l = low
	}
	r := q.rounds.at(l)
	n := r.ready(most)
	it := n.items.Peek()
	leaves := take(&it.value, it.size)
	if leaves < 0 {
		return v, false
	}
	r.charge(n, min(leaves, most))
	q.earn(l, top, min(leaves, most))
	all = leaves == it.size
	if l == top {
		q.part = 0
		if !all || n == r.holder {
			q.part = l + 1
		}
	}
	if all {
		return q.take(n, most).value, true
	}
	it.size -= leaves
	return v, false
}

// PopUrgent removes and returns the message of the highest priority whose turn it is, if messages
// of lower ones wait, too, and may reports true for it. Otherwise all stays as it is, and ok is
// false.
func (q *Queue[T]) PopUrgent(may func(v *T, size int) bool) (v T, ok bool) {
	if q.len == 0 {
		return v, false
	}
	top := q.rounds.used.highest(levels)
	if q.rounds.used.lowest() == top {
		return v, false
	}
	r := q.rounds.at(top)
	n := r.ready(math.MaxInt)
	it := n.items.Peek()
	if !may(&it.value, it.size) {
		return v, false
	}
	r.charge(n, it.size)
	q.earn(top, top, it.size)
	return q.take(n, math.MaxInt).value, true
}

// earn notes that so many bytes of level l have left, while top was the highest level.
func (q *Queue[T]) earn(l, top, bytes int) {
	q.owed = min(q.owed+float64(bytes)*q.share, mostOwed)
	if l != top {
		q.owed -= float64(bytes)
		q.last = l
	}
}

// Clear removes all messages of f and hands each to drop, oldest first.
func (q *Queue[T]) Clear(f *Flow[T], drop func(T)) {
	for range f.Len() {
		drop(q.take(f.line, math.MaxInt).value)
	}
}

// Filter removes every message for which keep returns false. It takes time in proportion to what
// waits.
func (q *Queue[T]) Filter(keep func(*T) bool) {
	for l := q.rounds.used.highest(levels); l >= 0; l = q.rounds.used.highest(l) {
		r := q.rounds.at(l)
		for _, n := range r.parked.lines(r.turns.lines(nil)) {
			q.len -= n.items.Filter(func(it *item[T]) bool { return keep(&it.value) })
			if n.items.Len() == 0 {
				q.leave(n)
			}
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

// guarded returns the level below top whose turn the guard grants, or -1. It grants none behind a
// part of a lower priority, which has left because nothing else waited: so an urgent message that
// has come meanwhile waits for that part only.
func (q *Queue[T]) guarded(top int) int {
	if q.share == 0 || q.owed < mostOwed/4 || q.part > 0 && q.part <= top {
		return -1
	}
	if l := q.rounds.used.highest(min(q.last, top)); l >= 0 {
		return l
	}
	return q.rounds.used.highest(top) // the lowest had its turn: start again below the top
}

// take removes the first message of n. Others of more than most bytes leave in parts.
func (q *Queue[T]) take(n *line[T], most int) item[T] {
	it := n.items.Pop()
	q.len--
	if n.items.Len() == 0 {
		q.leave(n)
	} else {
		q.rounds.at(level(n.flow.Priority)).left(n, most)
	}
	return it
}
