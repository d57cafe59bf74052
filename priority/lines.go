package priority

import "github.com/asterisque-go/asterisque/internal/fifo"

// Lines is a queue of values: the highest priority first, and first in, first out within one
// priority. Push and Pop take constant time. Memory is proportional to the number of queued values;
// some KiB of freed memory are kept for reuse. The zero Lines is empty. It is not safe for
// concurrent use.
type Lines[T any] struct {
	normal fifo.Queue[T]   // the line of Normal, the most common priority
	others *otherLevels[T] // nil until a value has another priority
	len    int
}

// otherLevels holds the lines of all priorities but Normal.
type otherLevels[T any] struct {
	lines  byLevel[*fifo.Queue[T]] // none of the lines is empty
	spares spareLines[*fifo.Queue[T]]
}

// mostSpare is the limit, in bytes, for the spare lines of a Lines.
const mostSpare = 3 << 10

// Len returns the number of queued values.
func (l *Lines[T]) Len() int { return l.len }

// Push appends v to the line of p.
func (l *Lines[T]) Push(p Priority, v T) {
	l.len++
	if p == Normal {
		l.normal.Push(v)
		return
	}
	if l.others == nil {
		l.others = new(otherLevels[T])
	}
	l.others.push(level(p), v)
}

// push appends v to the line of level n.
func (o *otherLevels[T]) push(n int, v T) {
	line := o.lines.add(n)
	if *line == nil {
		*line = o.spare()
	}
	(*line).Push(v)
}

// Peek returns the value that Pop would return, and its priority. ok is false for an empty Lines.
func (l *Lines[T]) Peek() (p Priority, v T, ok bool) {
	n := l.highest(levels)
	if n < 0 {
		return p, v, false
	}
	return Priority(n + int(Min)), *l.at(n).Peek(), true
}

// Pop removes and returns the value that is next in turn. ok is false for an empty Lines.
func (l *Lines[T]) Pop() (v T, ok bool) {
	if l.others == nil { // common case: only one line
		if l.len == 0 {
			return v, false
		}
		l.len--
		return l.normal.Pop(), true
	}
	n := l.highest(levels)
	if n < 0 {
		return v, false
	}
	line := l.at(n)
	v = line.Pop()
	l.len--
	l.tidy(n, line)
	return v, true
}

// PopLast removes and returns the newest value of the lowest priority. ok is false if that priority
// is not below p.
func (l *Lines[T]) PopLast(p Priority) (v T, ok bool) {
	n := l.lowest()
	if n < 0 || n >= level(p) {
		return v, false
	}
	line := l.at(n)
	v = line.PopLast()
	l.len--
	l.tidy(n, line)
	return v, true
}

// Filter removes every value for which keep returns false.
func (l *Lines[T]) Filter(keep func(T) bool) {
	for n := l.highest(levels); n >= 0; n = l.highest(n) {
		line := l.at(n)
		l.len -= line.Filter(func(v *T) bool { return keep(*v) })
		l.tidy(n, line)
	}
}

// highest returns the highest level, below the level under, with a queued value, or -1.
func (l *Lines[T]) highest(under int) int {
	n := -1
	if l.others != nil {
		n = l.others.lines.highest(under)
	}
	if normal := level(Normal); n < normal && normal < under && l.normal.Len() > 0 {
		return normal
	}
	return n
}

// lowest returns the lowest level with a queued value, or -1.
func (l *Lines[T]) lowest() int {
	n := -1
	if l.others != nil {
		n = l.others.lines.lowest()
	}
	if normal := level(Normal); (n < 0 || n > normal) && l.normal.Len() > 0 {
		return normal
	}
	return n
}

// at returns the line of a level that has a queued value.
func (l *Lines[T]) at(n int) *fifo.Queue[T] {
	if n == level(Normal) {
		return &l.normal
	}
	return *l.others.lines.at(n)
}

// spare returns an empty line.
func (o *otherLevels[T]) spare() *fifo.Queue[T] {
	if line, ok := o.spares.take(); ok {
		return line
	}
	return new(fifo.Queue[T])
}

// tidy removes the line of level n if it has become empty.
func (l *Lines[T]) tidy(n int, line *fifo.Queue[T]) {
	if line.Len() == 0 && n != level(Normal) {
		l.others.lines.remove(n)
		l.others.spares.put(line, mostSpare)
	}
}
