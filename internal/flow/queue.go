package flow

import (
	"slices"

	"github.com/asterisque-go/asterisque/priority"
)

// Waiter is a request for room that may have to wait, at a [Budget], a [Counter] or a [Credit].
type Waiter struct {
	Priority priority.Priority
	source   Class // of the room that was granted
	Bytes    int   // of room that it needs
	never    bool  // there will never be so much, and Granted is called with false
	// Granted is called once: with true when the room is granted, and with false when it never will
	// be. It does not block.
	Granted func(ok bool)

	in           *Queue  // nil: it does not wait
	before, next *Waiter // of its priority
}

// Ticket is a Waiter for a goroutine that waits.
type Ticket struct {
	Waiter
	turn    chan struct{}
	refused bool
}

// NewTicket returns a request for bytes of room.
func NewTicket(p priority.Priority, bytes int) *Ticket {
	t := &Ticket{turn: make(chan struct{})}
	t.Waiter = Waiter{Priority: p, Bytes: bytes, Granted: func(ok bool) {
		t.refused = !ok
		close(t.turn)
	}}
	return t
}

// Turn returns a channel that is closed when the request has its room, or never will: see Refused.
func (t *Ticket) Turn() <-chan struct{} { return t.turn }

// Refused reports, once the channel of Turn is closed, that the request gets no room.
func (t *Ticket) Refused() bool { return t.refused }

// Queue has the requests that wait for room: by priority, and among equals in the order of their
// arrival. Each operation takes constant time, whatever the number of waiters. The zero Queue is
// empty and strict. A Queue is guarded by the lock of its owner. The owner decides whether there is
// room for the first waiter.
type Queue struct {
	levels []level // of the priorities that wait, the highest first
	len    int

	share float64           // of the granted bytes, for lower priorities than the highest; fixed
	owed  float64           // bytes that these have earned
	last  priority.Priority // of these, the one served last
}

// level has the waiters of one priority.
type level struct {
	priority    priority.Priority
	first, last *Waiter
}

// find returns the place of the level of p, and whether it is there.
func (q *Queue) find(p priority.Priority) (at int, ok bool) {
	return slices.BinarySearchFunc(q.levels, p, func(l level, p priority.Priority) int { return int(p) - int(l.priority) })
}

// push puts w behind the waiters of its priority. w must not wait yet.
func (q *Queue) push(w *Waiter) {
	at, ok := q.find(w.Priority)
	if !ok {
		q.levels = slices.Insert(q.levels, at, level{priority: w.Priority})
	}
	l := &q.levels[at]
	w.in, w.before = q, l.last
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
	q.len++
}

// remove removes w, and reports whether w was in q.
func (q *Queue) remove(w *Waiter) bool {
	if w.in != q {
		return false
	}
	at, _ := q.find(w.Priority)
	l := &q.levels[at]
	if w.before == nil {
		l.first = w.next
	} else {
		w.before.next = w.next
	}
	if w.next == nil {
		l.last = w.before
	} else {
		w.next.before = w.before
	}
	if l.first == nil {
		q.levels = slices.Delete(q.levels, at, at+1)
	}
	w.in, w.before, w.next = nil, nil, nil
	q.len--
	return true
}

// first returns the waiter that is next in turn, or nil.
func (q *Queue) first() *Waiter {
	if len(q.levels) == 0 {
		return nil
	}
	return q.levels[q.turn()].first
}

// turn returns the level that is next in turn: the highest, or one of the lower ones if their share
// is due.
func (q *Queue) turn() int {
	if len(q.levels) == 1 || q.owed <= 0 {
		return 0
	}
	for i, l := range q.levels[1:] {
		if l.priority < q.last {
			return i + 1
		}
	}
	return 1
}

// grant removes the waiters in turn for which take finds room, and appends them to granted.
func (q *Queue) grant(granted []*Waiter, take func(w *Waiter) bool) []*Waiter {
	for q.len > 0 {
		at := q.turn()
		w := q.levels[at].first
		if !take(w) {
			break
		}
		switch {
		case len(q.levels) == 1:
			q.owed = 0
		case at == 0:
			q.owed += q.share * float64(w.Bytes)
		default:
			q.owed -= (1 - q.share) * float64(w.Bytes)
			q.last = w.Priority
		}
		q.remove(w)
		granted = append(granted, w)
	}
	return granted
}

// passes reports whether a request of priority p need not wait for other ones: none of that
// priority or a higher one waits.
func (q *Queue) passes(p priority.Priority) bool {
	return len(q.levels) == 0 || q.levels[0].priority < p
}

// Grant reports to waiters that their room is granted. The caller holds no lock.
func Grant(waiters []*Waiter) {
	for _, w := range waiters {
		w.Granted(true)
	}
}
