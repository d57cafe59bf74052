// Package fifo provides a first-in, first-out queue with memory proportional to its length.
package fifo

import "unsafe"

// chunkSize is the largest size, in bytes, of a chunk: together with the overhead of the allocator
// it takes a page of memory, 4 KiB.
const chunkSize = 4<<10 - 8

// fewValues is the length up to which a full first chunk grows. Beyond it, the values are moved to
// the front of the chunk if at least half of it is spent; for shorter chunks that would happen at
// each second Push.
const fewValues = 8

// growth determines by which part of its length a first chunk grows: a quarter. There may be as
// many queues as pipes, and the free part of their chunks is not accounted for.
const growth = 4

// Queue returns values in the order of their Push. The zero Queue is empty and holds no memory. It
// is not safe for concurrent use.
//
// The values are in chunks of one length. The first chunk is allocated small and grows to that
// length, so that a queue of few values is a small slice. The other chunks follow it. Besides its
// values, a Queue holds at most three chunks: the spent part of the first, the free part of the
// last, and a spare one. An empty Queue holds at most one chunk.
type Queue[T any] struct {
	first []T        // first[head:] holds the oldest values; it is empty only if the Queue is
	head  int        // the values before it were taken
	rest  *chunks[T] // the chunks after first; nil until there is more than one
}

// perChunk returns the length of a chunk.
func perChunk[T any]() int {
	var v T
	return max(chunkSize/max(int(unsafe.Sizeof(v)), 1), 1)
}

// Len returns the number of values in the queue.
func (q *Queue[T]) Len() int {
	n := len(q.first) - q.head
	if q.rest != nil {
		n += q.rest.len()
	}
	return n
}

// Held returns the bytes of q and of its memory, if q is empty.
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

// pushFull is Push for a first chunk without room.
func (q *Queue[T]) pushFull(v T) {
	if q.long() {
		q.rest.push(v)
		return
	}
	n := cap(q.first)
	switch {
	case n >= fewValues && q.head > n/2: // most of it is spent: move the rest to its front
		waits := copy(q.first, q.first[q.head:])
		clear(q.first[waits:])
		q.first, q.head = append(q.first[:waits], v), 0
	case n < perChunk[T]():
		larger := make([]T, 0, min(n+max(n/growth, 1), perChunk[T]()))
		larger = append(larger, q.first[q.head:]...)
		q.first, q.head = append(larger, v), 0
	default:
		if q.rest == nil {
			q.rest = new(chunks[T])
		}
		q.rest.push(v)
	}
}

// long reports whether there are values after the first chunk.
func (q *Queue[T]) long() bool { return q.rest != nil && !q.rest.empty() }

// Peek returns the value that Pop returns next. The queue must not be empty.
func (q *Queue[T]) Peek() *T { return &q.first[q.head] }

// At returns the value with i older ones. The queue must hold more than i values.
func (q *Queue[T]) At(i int) *T {
	i += q.head
	if i < len(q.first) {
		return &q.first[i]
	}
	return q.rest.at(i - len(q.first))
}

// Pop removes and returns the oldest value. The queue must not be empty.
func (q *Queue[T]) Pop() T {
	v := q.first[q.head]
	q.drop()
	return v
}

// drop removes the oldest value. It is separate from Pop, so that the compiler can inline Pop.
func (q *Queue[T]) drop() {
	var zero T
	q.first[q.head] = zero // drop the reference
	q.head++
	if q.head == len(q.first) {
		q.spent()
	}
}

// PopLast removes and returns the newest value. The queue must not be empty.
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

// spent replaces the first chunk, which has no values left.
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

// Reset empties q, releases its memory, and returns its values, oldest first.
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

// Filter removes every value for which keep returns false, and returns the number of removed
// values.
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
