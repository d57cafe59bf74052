package asterisque

import (
	"log/slog"
	"sync"

	"github.com/asterisque-go/asterisque/internal/fifo"
	"github.com/asterisque-go/asterisque/internal/guard"
)

// mostReports is how many reports on one session or connection may wait for their callback, beside
// what one event causes, which waits as a whole. They take some 100 bytes each.
const mostReports = 16 << 10

// The kinds of reports: of some the newest is told in any case, because it says how things are.
const (
	noKind   = -1
	keepLast = 0 // and 1
)

// reports are told to callbacks that only observe: one after the other for each session and each
// connection, in their order, on a goroutine that exists only while there are some. So these
// callbacks may block, and nothing waits for them. What they do not keep up with is counted, and
// logged.
type reports struct {
	log *slog.Logger // fixed

	mu sync.Mutex
	of map[any]*reporting // guarded by mu, like what is in it; by *Session or *Connection
}

// reporting is what is to be told of one session or connection.
type reporting struct {
	waiting fifo.Queue[report]
	n       int        // reports in waiting
	last    [2]*report // the newest of each kind that found no place; nil without
	lost    int        // how many have found no place, and were given up
}

// report is what one event causes: several calls of a callback.
type report struct {
	what  string // the callback
	tell  func(i int)
	at, n int // the next of how many
}

// add lets f tell one thing of a session or connection.
func (r *reports) add(of any, what string, kind int, f func()) {
	r.put(of, kind, report{what: what, n: 1, tell: func(int) { f() }})
}

// addAll lets f tell n things, by their numbers.
func (r *reports) addAll(of any, what string, n int, f func(i int)) {
	r.put(of, noKind, report{what: what, n: n, tell: f})
}

func (r *reports) put(of any, kind int, p report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.of[of]
	if q == nil {
		if r.of == nil {
			r.of = make(map[any]*reporting)
		}
		q = new(reporting)
		r.of[of] = q
		go r.run(of, q) // ends when nothing waits
	}
	q.put(kind, p)
}

func (q *reporting) put(kind int, p report) {
	late := kind != noKind && q.last[kind] != nil
	switch {
	case q.n < mostReports && !late:
		q.waiting.Push(p)
		q.n += p.n
	case kind == noKind:
		q.lost += p.n
	default:
		if late {
			q.lost++
		}
		q.last[kind] = &p
	}
}

// run tells what waits. If a callback ends the goroutine, another one goes on.
func (r *reports) run(of any, q *reporting) {
	returned := false
	defer func() {
		if !returned {
			go r.run(of, q)
		}
	}()
	for p, ok := r.next(of, q); ok; p, ok = r.next(of, q) {
		guard.Run(r.log, p.what, func() { p.tell(p.at) }, about(of)...)
	}
	returned = true
}

// about returns what a log says of a session or connection.
func about(of any) []any {
	if s, ok := of.(slog.LogValuer); ok { // a session
		return []any{"session", s}
	}
	return nil
}

// next returns what is to be told next. It reports false, and forgets q, if there is nothing.
func (r *reports) next(of any, q *reporting) (p report, ok bool) {
	r.mu.Lock()
	p, ok = q.next()
	lost := q.lost
	if !ok {
		q.lost = 0
		if lost == 0 {
			delete(r.of, of)
		}
	}
	r.mu.Unlock()
	if ok || lost == 0 {
		return p, ok
	}
	r.log.Warn("callbacks did not keep up with what they observe", append(about(of), "lost", lost)...)
	return r.next(of, q)
}

func (q *reporting) next() (p report, ok bool) {
	if q.waiting.Len() > 0 {
		first := q.waiting.Peek()
		p = *first
		q.n--
		if first.at++; first.at == first.n {
			q.waiting.Pop()
		}
		return p, true
	}
	for kind, last := range q.last {
		if last != nil {
			q.last[kind] = nil
			return *last, true
		}
	}
	return p, false
}
