package dispatch

import (
	"github.com/asterisque-go/asterisque/internal/fifo"
	"github.com/asterisque-go/asterisque/internal/quota"
)

// fairQueue is a queue in which owners take turns, and the elements of one owner are in order. The
// zero fairQueue is empty. It is not safe for concurrent use.
type fairQueue[T any] struct {
	next    fifo.Queue[*quota.Owner] // owners with elements, each once
	waiting map[*quota.Owner]*fifo.Queue[T]
	n       int
}

// len returns the number of elements.
func (t *fairQueue[T]) len() int { return t.n }

// push appends v to the elements of w.
func (t *fairQueue[T]) push(w *quota.Owner, v T) {
	q := t.waiting[w]
	if q == nil {
		if t.waiting == nil {
			t.waiting = make(map[*quota.Owner]*fifo.Queue[T])
		}
		q = new(fifo.Queue[T])
		t.waiting[w] = q
		t.next.Push(w)
	}
	q.Push(v)
	t.n++
}

// pop removes and returns the oldest element of the next owner. There must be an element.
func (t *fairQueue[T]) pop() T {
	w := t.next.Pop()
	q := t.waiting[w]
	v := q.Pop()
	t.n--
	if q.Len() > 0 {
		t.next.Push(w)
	} else {
		delete(t.waiting, w)
	}
	return v
}

// remove removes the elements of w for which keep is false.
func (t *fairQueue[T]) remove(w *quota.Owner, keep func(*T) bool) {
	q := t.waiting[w]
	if q == nil {
		return
	}
	t.n -= q.Filter(keep)
	if q.Len() == 0 {
		delete(t.waiting, w)
		t.next.Filter(func(o **quota.Owner) bool { return *o != w })
	}
}
