package priority

// round is the lines of one priority. One message at a time is under way of those that leave in
// parts: the holder has the right to that, and lines whose next message would be another one are
// parked until the right is theirs. The turn of the holder is as large as those of all parked lines
// together. Each of these lines has an account, which gets the bytes of a turn with every turn of
// the holder, and pays for what the line sends. The right goes to a line that has something left,
// and stays while that is so. A line that goes back to small messages in debt pays with its own
// turns, as long as there is a holder to get them.
//
// The account of the holder, and of a parked line, is its deficit and what the round has given.
type round[T any] struct {
	// its first line is whose turn it is, or will be if its message is too large for what is left
	turns  ring[T]
	parked ring[T]
	number int      // of parked lines
	holder *line[T] // one of turns; nil: nobody holds the right
	pool   int      // bytes left of the turn of the holder
	given  int      // bytes that each account got since there has been a holder
}

// ready returns the line whose turn it is to let a message leave, or at most so many bytes of one.
func (r *round[T]) ready(most int) *line[T] {
	for {
		n := r.turns.first
		size := n.items.Peek().size
		switch {
		case n == r.holder:
			if min(size, most) <= r.pool {
				return n
			}
			r.given += quantum
			r.pool += quantum * (1 + r.number)
			r.turns.first = n.next
		case size > most:
			r.join(n)
		case size > n.deficit:
			r.earn(n)
			r.turns.first = n.next
		default:
			return n
		}
	}
}

// join lets n hold the right, or wait for it.
func (r *round[T]) join(n *line[T]) {
	if r.holder == nil {
		r.holder, r.pool, r.given = n, max(n.deficit, 0), 0
		return
	}
	r.pool += max(n.deficit, 0)
	n.deficit -= r.given
	r.turns.remove(n)
	r.park(n)
}

// earn gives n, which needs no right, a turn.
func (r *round[T]) earn(n *line[T]) {
	switch {
	case n.deficit >= 0:
	case r.holder != nil:
		r.pool += min(quantum, -n.deficit)
	default: // those that have lent it their turns have left
		n.deficit = 0
	}
	n.deficit += quantum
}

// charge notes that so many bytes of n leave.
func (r *round[T]) charge(n *line[T], bytes int) {
	n.deficit -= bytes
	if n == r.holder {
		r.pool -= bytes
	}
}

// left notes that a message of n has left, or was dropped, and that others of n wait. Those of more
// than most bytes leave in parts.
func (r *round[T]) left(n *line[T], most int) {
	if n != r.holder {
		return
	}
	large := n.items.Peek().size > most
	switch {
	case r.number > 0 && r.account(n) <= 0:
		next := r.next()
		r.turns.insert(next, n)
		r.holder = next
		if large {
			r.turns.remove(n)
			r.park(n)
		} else {
			n.deficit += r.given
		}
	case r.number == 0 && !large:
		n.deficit = max(r.account(n), 0)
		r.holder = nil
	}
}

// remove takes n out.
func (r *round[T]) remove(n *line[T]) {
	if n.parked {
		r.pool -= max(r.account(n), 0)
		r.unpark(n)
		return
	}
	if n == r.holder {
		r.pool -= max(r.account(n), 0)
		r.holder = nil
		if r.number > 0 {
			r.holder = r.next()
			r.turns.insert(r.holder, n)
		}
	}
	r.turns.remove(n)
}

// next returns the parked line that is to hold the right, which is parked no more: the first one
// that has something left, or else the one that lacks least.
func (r *round[T]) next() *line[T] {
	best := r.parked.first
	for n := best.next; r.account(best) <= 0 && n != r.parked.first; n = n.next {
		if r.account(n) > r.account(best) {
			best = n
		}
	}
	r.parked.first = best // those before it come after all others
	r.unpark(best)
	return best
}

func (r *round[T]) account(n *line[T]) int { return n.deficit + r.given }

func (r *round[T]) park(n *line[T]) {
	r.parked.append(n)
	n.parked = true
	r.number++
}

func (r *round[T]) unpark(n *line[T]) {
	r.parked.remove(n)
	n.parked = false
	r.number--
}
