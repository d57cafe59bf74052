package priority

// round is the circle of the lines of one priority.
type round[T any] struct {
	// whose turn it is, or will be if its message is too large for what is left of it
	first *line[T]
}

// ready returns the line whose turn it is.
func (r *round[T]) ready() *line[T] {
	for r.first.items.Peek().size > r.first.deficit {
		r.first.deficit += quantum
		r.first = r.first.next
	}
	return r.first
}

// append makes n the last line.
func (r *round[T]) append(n *line[T]) {
	if r.first == nil {
		r.first, n.next, n.prev = n, n, n
		return
	}
	n.next, n.prev = r.first, r.first.prev
	n.prev.next, n.next.prev = n, n
}

// remove takes n out.
func (r *round[T]) remove(n *line[T]) {
	n.prev.next, n.next.prev = n.next, n.prev
	switch {
	case n.next == n:
		r.first = nil
	case r.first == n:
		r.first = n.next
	}
	n.next, n.prev = nil, nil
}
