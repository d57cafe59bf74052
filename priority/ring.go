package priority

// flowRing is a circular list of lines.
type flowRing[T any] struct{ first *flowLine[T] }

// append makes n the last line.
func (r *flowRing[T]) append(n *flowLine[T]) {
	if r.first == nil {
		r.first, n.next, n.prev = n, n, n
		return
	}
	n.next, n.prev = r.first, r.first.prev
	n.prev.next, n.next.prev = n, n
}

// insert puts n in the place of the line before, which follows it. If before was the first line, n
// becomes the first.
func (r *flowRing[T]) insert(n, before *flowLine[T]) {
	n.next, n.prev = before, before.prev
	n.prev.next, n.next.prev = n, n
	if r.first == before {
		r.first = n
	}
}

// remove removes n.
func (r *flowRing[T]) remove(n *flowLine[T]) {
	n.prev.next, n.next.prev = n.next, n.prev
	switch {
	case n.next == n:
		r.first = nil
	case r.first == n:
		r.first = n.next
	}
	n.next, n.prev = nil, nil
}

// lines appends all lines to list.
func (r *flowRing[T]) lines(list []*flowLine[T]) []*flowLine[T] {
	if r.first == nil {
		return list
	}
	list = append(list, r.first)
	for n := r.first.next; n != r.first; n = n.next {
		list = append(list, n)
	}
	return list
}
