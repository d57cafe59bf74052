// Package fifo is a first-in, first-out queue that holds memory in proportion to what waits in it.
package fifo

import "unsafe"

// chunkSize is how many bytes of values are allocated at once, at most: with what the allocator
// adds to them, a page of memory.
const chunkSize = 4<<10 - 8

// fewValues is the length up to which a first chunk grows rather than have what waits in it moved
// to its front at each second Push.
const fewValues = 8

// growth is by which part of its length a first chunk grows: there may be as many queues as pipes,
// and what their chunks have free is counted for nobody.
const growth = 4

// Queue hands values out in the order in which they came. The zero Queue is empty and holds no
// memory. It is not safe for concurrent use.
//
// Values wait in chunks of one length. The first one is allocated small and grows to that length,
// so that a queue of few values is a small slice; the others are behind it. Beside what waits, a
// Queue holds no more than three chunks, which are the spent part of the first, the free part of
// the last and a spare one, and an empty Queue holds no more than one.
type Queue[T any] struct {
	first []T      // first[head:] is what waits longest; it is empty only if the Queue is
	head  int      // those before were taken
	rest  *rest[T] // behind first; nil until there is more than a chunk
}

// perChunk returns the length of a chunk.
func perChunk[T any]() int {
	var v T
	return max(chunkSize/max(int(unsafe.Sizeof(v)), 1), 1)
}

// Len returns the number of values that wait.
func (q *Queue[T]) Len() int {
	n := len(q.first) - q.head
	if q.rest != nil {
		n += q.rest.len()
	}
	return n
}

// Held returns the bytes of q and of the memory that it keeps, if it is empty.
func (q *Queue[T]) Held() int {
	var v T
	return int(unsafe.Sizeof(*q)) + cap(q.first)*int(unsafe.Sizeof(v))
}

// Push appends v.
func (q *Queue[T]) Push(v T) {
	if len(q.first) == cap(q.first) {
		q.pushFull(v)
		return
	}
	q.first = append(q.first, v)
}

// pushFull is Push if the first chunk has no room.
func (q *Queue[T]) pushFull(v T) {
	if q.long() {
		q.rest.push(v)
		return
	}
	n := cap(q.first)
	switch {
	case n >= fewValues && q.head > n/2: // most of it is spent: move what waits to its front
		waits := copy(q.first, q.first[q.head:])
		clear(q.first[waits:])
		q.first, q.head = append(q.first[:waits], v), 0
	case n < perChunk[T]():
		larger := make([]T, 0, min(n+max(n/growth, 1), perChunk[T]()))
		larger = append(larger, q.first[q.head:]...)
		q.first, q.head = append(larger, v), 0
	default:
		if q.rest == nil {
			q.rest = new(rest[T])
		}
		q.rest.push(v)
	}
}

// long reports whether values wait behind the first chunk.
func (q *Queue[T]) long() bool { return q.rest != nil && !q.rest.empty() }

// Peek returns the value that Pop returns next. There must be one.
func (q *Queue[T]) Peek() *T { return &q.first[q.head] }

// At returns the value that Pop would return after i others. There must be more than i.
func (q *Queue[T]) At(i int) *T {
	i += q.head
	if i < len(q.first) {
		return &q.first[i]
	}
	return q.rest.at(i - len(q.first))
}

// Pop removes the oldest value and returns it. There must be one.
func (q *Queue[T]) Pop() T {
	v := q.first[q.head]
	q.drop()
	return v
}

// drop removes the oldest value. It is apart from Pop, so that the compiler can inline that.
func (q *Queue[T]) drop() {
	var zero T
	q.first[q.head] = zero // let go of what it refers to
	q.head++
	if q.head == len(q.first) {
		q.spent()
	}
}

// PopLast removes the youngest value and returns it. There must be one.
func (q *Queue[T]) PopLast() T {
	if q.long() {
		return q.rest.popLast()
	}
	var zero T
	last := len(q.first) - 1
	v := q.first[last]
	q.first[last] = zero
	q.first = q.first[:last]
	if q.head == last {
		q.spent()
	}
	return v
}

// spent replaces the first chunk, of which nothing waits any more.
func (q *Queue[T]) spent() {
	q.first, q.head = q.first[:0], 0
	switch {
	case q.rest == nil:
	case q.rest.empty():
		q.rest = nil
	default:
		q.first, q.rest.spare = q.rest.shift(), q.first
	}
}

// Reset empties q, which holds no memory then, and returns what waited, oldest first.
func (q *Queue[T]) Reset() []T {
	waited := q.first[q.head:]
	if q.long() {
		waited = append(make([]T, 0, q.Len()), waited...)
		for _, c := range q.rest.chunks[q.rest.head:] {
			waited = append(waited, c...)
		}
	}
	*q = Queue[T]{}
	return waited
}

// Filter removes every value for which keep returns false, and returns how many those were.
func (q *Queue[T]) Filter(keep func(*T) bool) (removed int) {
	n, kept := q.Len(), 0
	for i := range n {
		v := q.At(i)
		if !keep(v) {
			continue
		}
		if kept < i {
			*q.At(kept) = *v
		}
		kept++
	}
	for range n - kept {
		q.PopLast()
	}
	return n - kept
}
