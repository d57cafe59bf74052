package priority

// round is the lines of one priority. Of messages that leave in parts, one at a time is under way:
// the line that has it holds the right to that, and lines whose next message would be another one
// are parked until it is their turn to hold it. While a line is parked, another one holds it. Its
// turns are as large as those of all that are parked together, and what is left of them goes with
// the right: so parked lines have their share.
type round[T any] struct {
	// its first line is whose turn it is, or will be if its message is too large for what is left
	turns  ring[T]
	parked ring[T]
	number int      // of parked lines
	holder *line[T] // one of turns; nil: nobody holds the right
}

// ready returns the line whose turn it is to let a message leave, or at most so many bytes of one.
func (r *round[T]) ready(most int) *line[T] {
	for {
		n := r.turns.first
		size := n.items.Peek().size
		if size > most && r.holder == nil {
			r.holder = n
		}
		switch {
		case size > most && r.holder != n:
			r.turns.remove(n)
			r.parked.append(n)
			n.parked = true
			r.number++
		case min(size, most) > n.deficit:
			n.deficit += r.quantum(n)
			r.turns.first = n.next
		default:
			return n
		}
	}
}

// quantum returns how many bytes n gets in its turn.
func (r *round[T]) quantum(n *line[T]) int {
	if n == r.holder {
		return quantum * (1 + r.number)
	}
	return quantum
}

// left notes that a message of n has left, or was dropped.
func (r *round[T]) left(n *line[T]) {
	if r.holder != n {
		return
	}
	r.holder = r.parked.first
	if next := r.holder; next != nil {
		r.unpark(next)
		r.turns.prepend(next)
		next.deficit += n.deficit
		n.deficit = 0
	}
}

func (r *round[T]) unpark(n *line[T]) {
	r.parked.remove(n)
	r.number--
	n.parked = false
}

// remove takes n out.
func (r *round[T]) remove(n *line[T]) {
	if n.parked {
		r.unpark(n)
		return
	}
	r.turns.remove(n)
	r.left(n)
}
