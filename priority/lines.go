package priority

import "github.com/asterisque-go/asterisque/internal/fifo"

// Lines holds values until their turn: the highest priority first, and first in, first out within one priority. Push and Pop take constant time. The zero Lines is
// empty. It is not safe for concurrent use.
type Lines[T any] struct {
	normal fifo.Queue[T]                    // the line of Normal, which most values have: the others need memory of their own
	lines  [pages]*[pageSize]*fifo.Queue[T] // by level; a page, and a line, is nil until its first Push
	used   set
	len    int
}

// Len returns the number of values that wait.
func (l *Lines[T]) Len() int { return l.len }

// Push appends v to the line of p.
func (l *Lines[T]) Push(p Priority, v T) {
	n := level(p)
	if p != Normal {
		page := &l.lines[n/pageSize]
		if *page == nil {
			*page = new([pageSize]*fifo.Queue[T])
		}
		if line := &(*page)[n%pageSize]; *line == nil {
			*line = new(fifo.Queue[T])
		}
	}
	l.at(n).Push(v)
	l.used.add(n)
	l.len++
}

// at returns the line of a level to which something has been pushed.
func (l *Lines[T]) at(n int) *fifo.Queue[T] {
	if n == level(Normal) {
		return &l.normal
	}
	return l.lines[n/pageSize][n%pageSize]
}

// Peek returns the value that Pop returns next, and its priority; ok is false when none waits.
func (l *Lines[T]) Peek() (p Priority, v T, ok bool) {
	n := l.used.highest(levels)
	if n < 0 {
		return p, v, false
	}
	return Priority(n + int(Min)), *l.at(n).Peek(), true
}

// Pop removes and returns the value whose turn it is; ok is false when none waits.
func (l *Lines[T]) Pop() (v T, ok bool) {
	n := l.used.highest(levels)
	if n < 0 {
		return v, false
	}
	line := l.at(n)
	v = line.Pop()
	if line.Len() == 0 {
		l.used.remove(n)
	}
	l.len--
	return v, true
}

// PopLast removes and returns, of the values with the lowest priority, the one that came last, if that priority is below p.
func (l *Lines[T]) PopLast(p Priority) (v T, ok bool) {
	n := l.used.lowest()
	if n < 0 || n >= level(p) {
		return v, false
	}
	line := l.at(n)
	v = line.PopLast()
	if line.Len() == 0 {
		l.used.remove(n)
	}
	l.len--
	return v, true
}

// Filter removes every value for which keep returns false.
func (l *Lines[T]) Filter(keep func(T) bool) {
	for n := l.used.highest(levels); n >= 0; n = l.used.highest(n) {
		line := l.at(n)
		l.len -= line.Filter(func(v *T) bool { return keep(*v) })
		if line.Len() == 0 {
			l.used.remove(n)
		}
	}
}
