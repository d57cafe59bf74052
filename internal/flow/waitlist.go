package flow

import (
	"slices"

	"github.com/asterisque-go/asterisque/priority"
)

// Waiter is a request for room that may have to wait, in a [Room] or in a [Queue].
type Waiter struct {
	Priority priority.Priority
	source   Source // of the room that was granted
	Bytes    int    // of room that it needs
	// Granted is called once: with true when the room is granted, and with false when it never will
	// be. It does not block.
	Granted func(ok bool)

	in           *waitList // nil: it does not wait
	before, next *Waiter   // of its priority
}

// waitList has the requests that wait for room: by priority, and among equals in the order of their
// arrival. Each operation takes constant time, whatever the number of waiters. The zero waitList is
// empty. A waitList is guarded by the lock of its owner. The owner decides whether there is room
// for the first waiter.
type waitList struct {
	levels []level // of the priorities that wait, the highest first
	len    int
}

// level has the waiters of one priority.
type level struct {
	priority    priority.Priority
	first, last *Waiter
}

// find returns the place of the level of p, and whether it is there.
func (q *waitList) find(p priority.Priority) (at int, ok bool) {
	return slices.BinarySearchFunc(q.levels, p, func(l level, p priority.Priority) int { return int(p) - int(l.priority) })
}

// push puts w behind the waiters of its priority. w must not wait yet.
func (q *waitList) push(w *Waiter) {
	at, ok := q.find(w.Priority)
	if !ok {
		q.levels = slices.Insert(q.levels, at, level{priority: w.Priority})
	}
	l := &q.levels[at]
	w.in, w.before = q, l.last
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
	q.len++
}

// remove removes w, and reports whether w was in q.
func (q *waitList) remove(w *Waiter) bool {
	if w.in != q {
		return false
	}
	at, _ := q.find(w.Priority)
	l := &q.levels[at]
	if w.before == nil {
		l.first = w.next
	} else {
		w.before.next = w.next
	}
	if w.next == nil {
		l.last = w.before
	} else {
		w.next.before = w.before
	}
	if l.first == nil {
		q.levels = slices.Delete(q.levels, at, at+1)
	}
	w.in, w.before, w.next = nil, nil, nil
	q.len--
	return true
}

// first returns the waiter that is next in turn, or nil.
func (q *waitList) first() *Waiter {
	if len(q.levels) == 0 {
		return nil
	}
	return q.levels[0].first
}

// passes reports whether a request of priority p need not wait for other ones: none of that
// priority or a higher one waits.
func (q *waitList) passes(p priority.Priority) bool {
	return len(q.levels) == 0 || q.levels[0].priority < p
}
