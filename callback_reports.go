package asterisque

import (
	"log/slog"
	"sync"

	"github.com/asterisque-go/asterisque/internal/fifo"
	"github.com/asterisque-go/asterisque/internal/guard"
)

// mostReports bounds the queued reports of one session or connection, in calls of callbacks. A
// single event is queued as a whole. Each call takes about 100 bytes.
const mostReports = 16 << 10

// The kinds of reports: the newest report of a kind is never lost, because it has the present
// state.
const (
	noKind    = -1
	keepLimit = 0 // and 1, by direction
	keepAway  = 2
	keepState = 3 // of a connection, or of a Shutdown
	keepEnded = 4 // always the last one
	kinds     = 5
)

// reportSource is a session, a connection or a Shutdown.
type reportSource interface {
	// logged returns the attributes for logs.
	logged() []any
	// closed points to the flag that ends the reports. It is guarded by the reports.
	closed() *bool
}

// callbackReports calls callbacks that only observe, one after the other for each session and each
// connection, in order, on a goroutine that exists only while reports are queued. These callbacks
// may therefore block, and no operation waits for them. Lost reports are counted and logged.
type callbackReports struct {
	log *slog.Logger // fixed

	mu sync.Mutex
	of map[reportSource]*pendingReports // guarded by mu, like its elements
}

// pendingReports is the queue of one session or connection.
type pendingReports struct {
	waiting fifo.Queue[callbackReport]
	n       int                    // reports in waiting
	last    [kinds]*callbackReport // the newest of each kind that found no place; nil without
	lost    int                    // number of reports that found no place, and were dropped
}

// callbackReport is one event: several calls of callbacks.
type callbackReport struct {
	what  string // the callback
	kind  int
	tell  func(i int)
	at, n int // the next call, and their number
}

// add queues p for a session or connection, unless that is closed.
func (r *callbackReports) add(of reportSource, p callbackReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addLocked(of, p)
}

// close queues p as the last report of a session or connection.
func (r *callbackReports) close(of reportSource, p callbackReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.n > 0 {
		r.addLocked(of, p)
	}
	*of.closed() = true
}

func (r *callbackReports) addLocked(of reportSource, p callbackReport) {
	if *of.closed() {
		return
	}
	q := r.of[of]
	if q == nil {
		if r.of == nil {
			r.of = make(map[reportSource]*pendingReports)
		}
		q = new(pendingReports)
		r.of[of] = q
		go r.run(of, q) // ends when nothing waits
	}
	q.put(p)
}

func (q *pendingReports) put(p callbackReport) {
	late := p.kind != noKind && q.last[p.kind] != nil
	switch {
	case q.n < mostReports && !late:
		q.waiting.Push(p)
		q.n += p.n
	case p.kind == noKind:
		q.lost += p.n
	default:
		if late {
			q.lost++
		}
		q.last[p.kind] = &p
	}
}

// run makes the queued calls. If a callback ends the goroutine, another one takes over.
func (r *callbackReports) run(of reportSource, q *pendingReports) {
	returned := false
	defer func() {
		if !returned {
			go r.run(of, q)
		}
	}()
	for p, ok := r.next(of, q); ok; p, ok = r.next(of, q) {
		guard.Run(r.log, p.what, func() { p.tell(p.at) }, of.logged()...)
	}
	returned = true
}

// next returns the next call. If there is none, it removes q and returns false.
func (r *callbackReports) next(of reportSource, q *pendingReports) (p callbackReport, ok bool) {
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
	r.log.Warn("callbacks did not keep up with what they observe", append(of.logged(), "lost", lost)...)
	return r.next(of, q)
}

func (q *pendingReports) next() (p callbackReport, ok bool) {
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
			p = *last
			if last.at++; last.at == last.n {
				q.last[kind] = nil
			}
			return p, true
		}
	}
	return p, false
}
