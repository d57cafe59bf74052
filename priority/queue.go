package priority

import (
	"math"
	"unsafe"

	"github.com/asterisque-go/asterisque/internal/fifo"
)

// quantum is the number of bytes that a flow may send in its turn, before the next flow of the same
// priority. It does not exceed the smallest window of a stream, so a flow that uses up such a
// window in its turn gets its full share.
const quantum = 4 << 10

// mostOwed is the upper limit of the bytes that the guard owes to lower priorities.
const mostOwed = 16 << 10

// Queue holds messages until they may be sent. The highest priority is sent first. Messages of a
// flow are sent in the order of Push. Flows of one priority take turns, fair by bytes (deficit
// round robin, Shreedhar and Varghese 1995). Push and Pop take constant time for any number of
// flows and priorities. Memory is proportional to the number of queued messages and of their flows;
// some KiB of freed memory are kept for reuse.
//
// The zero Queue is empty and strict: a lower priority waits until no higher one is left.
// [Queue.Guard] gives lower priorities a small share. A Queue is not safe for concurrent use.
type Queue[T any] struct {
	rounds byLevel[roundRobin[T]] // none of them is empty
	spares spareLines[*flowLine[T]]
	len    int

	share float64 // share of the bytes for lower priorities; 0 is strict
	owed  float64 // bytes that lower priorities have earned
	last  int     // the level that the guard served last
	part  int     // level+1 of the part sent last in its own right; 0: it was a whole message
}

// Flow is the place of one pipe in a Queue. The zero Flow is empty, and small unless messages wait.
// It belongs to one Queue while it holds messages, and must not be copied then.
type Flow[T any] struct {
	Priority Priority // must not change while the flow holds messages

	line *flowLine[T] // nil unless messages wait
}

// flowLine is the messages of one flow in their order, in the round of its priority. It holds at
// least one message.
type flowLine[T any] struct {
	items      fifo.Queue[item[T]]
	deficit    int          // bytes left in this turn
	flow       *Flow[T]     // nil while the line is spare, as are next and prev
	next, prev *flowLine[T] // in the round
	parked     bool         // see round
}

type item[T any] struct {
	value T
	size  int
}

// Held returns the bytes of a spare line and of the memory that it keeps.
func (n *flowLine[T]) Held() int {
	return int(unsafe.Sizeof(*n)-unsafe.Sizeof(n.items)) + n.items.Held()
}

// mostSpareLines is the limit, in bytes, for the spare lines of a Queue: enough for one line with a
// whole chunk.
const mostSpareLines = 9 << 10

// Guard reserves a share of the bytes for lower priorities while higher ones are busy. With 0.05,
// about 5 of 100 bytes belong to the levels below the highest, in turn. 0 is strict. The share is
// clamped to 0..0.5.
func (q *Queue[T]) Guard(share float64) { q.share = min(max(share, 0), 0.5) }

// Len returns the number of queued messages.
func (q *Queue[T]) Len() int { return q.len }

// Push appends v to f, as size bytes.
func (q *Queue[T]) Push(f *Flow[T], v T, size int) {
	if f.line == nil {
		q.enter(f)
	}
	f.line.items.Push(item[T]{v, size})
	q.len++
}

// enter gives f a line, the last one of its round. The caller adds a message to it.
func (q *Queue[T]) enter(f *Flow[T]) {
	n, ok := q.spares.take()
	if !ok {
		n = new(flowLine[T])
	}
	n.flow, n.deficit = f, quantum
	f.line = n
	q.rounds.add(level(f.Priority)).turns.append(n)
}

// leave removes n, which is empty, from its flow and its round.
func (q *Queue[T]) leave(n *flowLine[T]) {
	l := level(n.flow.Priority)
	r := q.rounds.at(l)
	r.remove(n)
	if r.turns.first == nil {
		q.rounds.remove(l)
	}
	n.flow.line, n.flow = nil, nil
	q.spares.put(n, mostSpareLines)
}

// Pop removes and returns the message that is next in turn. ok is false for an empty Queue.
func (q *Queue[T]) Pop() (v T, ok bool) { return q.PopAtMost(math.MaxInt) }

// PopAtMost is Pop if the next message has no more than size bytes. Otherwise the message stays the
// next one, and ok is false.
func (q *Queue[T]) PopAtMost(size int) (v T, ok bool) {
	return q.PopIf(func(_ *T, n int) bool { return n <= size })
}

// PopIf calls may with the next message and its size. If may returns true, PopIf is Pop. Otherwise
// the message stays the next one, and ok is false.
func (q *Queue[T]) PopIf(may func(v *T, size int) bool) (v T, ok bool) {
	return q.Take(math.MaxInt, func(v *T, size int) int {
		if may(v, size) {
			return size
		}
		return -1
	})
}

// Take is Pop for messages that may be sent in parts: messages of more than most bytes. Each part
// of such a message is charged as at most most bytes.
//
// Take calls take with the next message and its size. take returns the number of bytes to send now.
// If that is the whole message, Take removes the message and all is true. Otherwise the message
// stays the next one of its flow, with the remaining bytes as its size. If take returns a negative
// number, nothing is sent, and the message stays the next one.
//
// Within one priority, one message in parts is sent at a time. Other messages of more than most
// bytes wait until it ends, together with the messages behind them in their flows. Flows still get
// equal bytes, to within one message: each flow is charged for the bytes it has sent, and gets the
// share it missed while it waited later.
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

// PopUrgent removes and returns the next message of the highest priority, if messages of lower
// priorities wait, too, and may returns true for it. Otherwise the Queue stays as it is, and ok is
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

// earn records that bytes of level l were sent while top was the highest level.
func (q *Queue[T]) earn(l, top, bytes int) {
	q.owed = min(q.owed+float64(bytes)*q.share, mostOwed)
	if l != top {
		q.owed -= float64(bytes)
		q.last = l
	}
}

// Clear removes all messages of f and passes each to drop, oldest first.
func (q *Queue[T]) Clear(f *Flow[T], drop func(T)) {
	for range f.Len() {
		drop(q.take(f.line, math.MaxInt).value)
	}
}

// Filter removes every message for which keep returns false. Its time is proportional to the number
// of queued messages.
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

// Len returns the number of queued messages of f.
func (f *Flow[T]) Len() int {
	if f.line == nil {
		return 0
	}
	return f.line.items.Len()
}

// guarded returns the level below top that the guard serves next, or -1. It returns -1 after a part
// of a lower priority that was sent because no other message waited. So an urgent message that was
// pushed meanwhile waits for that one part only.
func (q *Queue[T]) guarded(top int) int {
	if q.share == 0 || q.owed < mostOwed/4 || q.part > 0 && q.part <= top {
		return -1
	}
	if l := q.rounds.used.highest(min(q.last, top)); l >= 0 {
		return l
	}
	return q.rounds.used.highest(top) // after the lowest level, start again below the top
}

// take removes the first message of n. Messages of more than most bytes are sent in parts.
func (q *Queue[T]) take(n *flowLine[T], most int) item[T] {
	it := n.items.Pop()
	q.len--
	if n.items.Len() == 0 {
		q.leave(n)
	} else {
		q.rounds.at(level(n.flow.Priority)).left(n, most)
	}
	return it
}
