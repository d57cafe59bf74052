package priority

// roundRobin is the lines of one priority. At most one message in parts is sent at a time: that of
// the holder. A line is parked while its next message is also sent in parts, until it becomes the
// holder. The turn of the holder is as large as those of all parked lines together.
//
// The holder and each parked line have an account. With every turn of the holder, each account
// earns the bytes of one turn. A line pays for its bytes from its account. The next holder is a
// line with a positive account, and it stays the holder while its account is positive. A line in
// debt that returns to small messages pays with its own turns, as long as there is a holder to
// receive them.
//
// The account of the holder, and of a parked line, is its deficit plus given.
type roundRobin[T any] struct {
	// the first line is next in turn; if its message exceeds its deficit, it earns a turn and moves
	// back
	turns  flowRing[T]
	parked flowRing[T]
	number int          // of parked lines
	holder *flowLine[T] // one of turns; nil: no line is the holder
	pool   int          // bytes left in the turn of the holder
	given  int          // bytes that each account has earned since there has been a holder
}

// ready returns the line that may send its next message now, or up to most bytes of it.
func (r *roundRobin[T]) ready(most int) *flowLine[T] {
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

// join makes n the holder, or parks n if there is one.
func (r *roundRobin[T]) join(n *flowLine[T]) {
	if r.holder == nil {
		r.holder, r.pool, r.given = n, max(n.deficit, 0), 0
		return
	}
	r.pool += max(n.deficit, 0)
	n.deficit -= r.given
	r.turns.remove(n)
	r.park(n)
}

// earn gives n, a line with a message that is sent whole, the bytes of a turn.
func (r *roundRobin[T]) earn(n *flowLine[T]) {
	switch {
	case n.deficit >= 0:
	case r.holder != nil:
		r.pool += min(quantum, -n.deficit)
	default: // the lines that lent it their turns are gone
		n.deficit = 0
	}
	n.deficit += quantum
}

// charge records that bytes of n are sent.
func (r *roundRobin[T]) charge(n *flowLine[T], bytes int) {
	n.deficit -= bytes
	if n == r.holder {
		r.pool -= bytes
	}
}

// left records that a message of n was sent or dropped, and that n holds further messages. Messages
// of more than most bytes are sent in parts.
func (r *roundRobin[T]) left(n *flowLine[T], most int) {
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

// remove removes n.
func (r *roundRobin[T]) remove(n *flowLine[T]) {
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

// next unparks and returns the line that becomes the holder: the first one with a positive account,
// or else the one with the least debt.
func (r *roundRobin[T]) next() *flowLine[T] {
	best := r.parked.first
	for n := best.next; r.account(best) <= 0 && n != r.parked.first; n = n.next {
		if r.account(n) > r.account(best) {
			best = n
		}
	}
	r.parked.first = best // the lines before it move to the end
	r.unpark(best)
	return best
}

func (r *roundRobin[T]) account(n *flowLine[T]) int { return n.deficit + r.given }

func (r *roundRobin[T]) park(n *flowLine[T]) {
	r.parked.append(n)
	n.parked = true
	r.number++
}

func (r *roundRobin[T]) unpark(n *flowLine[T]) {
	r.parked.remove(n)
	n.parked = false
	r.number--
}
