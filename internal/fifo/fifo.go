// Package fifo is a first-in, first-out queue in a slice.
package fifo

import "unsafe"

// spare is the number of bytes above which an emptied Queue lets go of its memory: enough for hundreds of pointers, which come and go all the time under load, and little for an idle session.
const spare = 4 << 10

// Queue hands values out in the order in which they came. The zero Queue is empty and holds no memory. It is not safe for concurrent use.
type Queue[T any] struct {
	items []T
	head  int // items[head:] wait
}

// Len returns the number of values that wait.
func (q *Queue[T]) Len() int { return len(q.items) - q.head }

// Push appends v.
func (q *Queue[T]) Push(v T) {
	if q.head > 16 && q.head > len(q.items)/2 { // half of the slice is spent: move what waits to its front
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, v)
}

// Peek returns the value that Pop returns next. There must be one.
func (q *Queue[T]) Peek() *T { return &q.items[q.head] }

// At returns the value that Pop would return after i others. There must be more than i.
func (q *Queue[T]) At(i int) *T { return &q.items[q.head+i] }

// Pop removes the oldest value and returns it. There must be one.
func (q *Queue[T]) Pop() T {
	var zero T
	v := q.items[q.head]
	q.items[q.head] = zero // let go of what it refers to
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
		if cap(q.items)*int(unsafe.Sizeof(zero)) > spare {
			q.items = nil
		}
	}
	return v
}

// PopLast removes the youngest value and returns it. There must be one.
func (q *Queue[T]) PopLast() T {
	var zero T
	last := len(q.items) - 1
	v := q.items[last]
	q.items[last] = zero
	q.items = q.items[:last]
	if q.head == last {
		q.items, q.head = q.items[:0], 0
	}
	return v
}

// Reset empties q and returns what waited, oldest first.
func (q *Queue[T]) Reset() []T {
	waited := q.items[q.head:]
	q.items, q.head = nil, 0
	return waited
}

// Filter removes every value for which keep returns false, and returns how many those were.
func (q *Queue[T]) Filter(keep func(*T) bool) (removed int) {
	kept := q.head
	for i := q.head; i < len(q.items); i++ {
		if keep(&q.items[i]) {
			q.items[kept] = q.items[i]
			kept++
		}
	}
	removed = len(q.items) - kept
	clear(q.items[kept:])
	q.items = q.items[:kept]
	return removed
}
