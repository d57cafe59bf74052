package callback

import (
	"log/slog"
	"sync"

	"github.com/asterisque-go/asterisque/internal/fifo"
	"github.com/asterisque-go/asterisque/internal/guard"
)

// mostReports bounds the queued reports of one Source, in calls of callbacks. A
// single event is queued as a whole. Each call takes about 100 bytes.
const mostReports = 16 << 10

// Kind is the state that a report is about. The newest report of a kind is never lost, because it
// has the present state. Reports of the kind Event may be lost.
type Kind int8

// Event is the kind of reports that have no state. The others are those of a Source.
const (
	Event     Kind = -1
	InLimits  Kind = 0 // state of the inbound limits of a session
	OutLimits Kind = 1
	Suspended Kind = 2
	State     Kind = 3 // of a connection, or of a Shutdown
	Ended     Kind = 4 // always the last one
	kinds          = 5
)

// Source is an object that callbacks observe, and the key of its queue: a session, a connection or
// a Shutdown.
type Source interface {
	// LogAttrs returns the attributes for logs.
	LogAttrs() []any
	// Closed points to a flag, initially false, that Reports guards, and sets by Close.
	Closed() *bool
}

// Reports calls callbacks that only observe, one after the other for each Source, in order, on a
// goroutine that exists only while reports are queued. These callbacks may therefore block, and no
// operation waits for them. Lost reports are counted and logged. It is safe for concurrent use.
type Reports struct {
	Log *slog.Logger // fixed

	mu      sync.Mutex
	pending map[Source]*queue // guarded by mu, like its elements
}

// queue is the queue of one Source.
type queue struct {
	waiting fifo.Queue[Report]
	n       int            // calls of callbacks in waiting
	last    [kinds]*Report // the newest of each kind that found no place; nil without
	lost    int            // calls that found no place, and were dropped; logged when none waits
}

// Report is one event: N calls of callbacks.
type Report struct {
	Name string // of the callback, for logs
	Kind Kind
	N    int
	Call func(i int) // makes call i of 0 to N-1

	at int // the next call
}

// Add queues p, unless its source is closed. It does not block.
func (r *Reports) Add(of Source, p Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addLocked(of, p)
}

// Close queues p as the last report of its source.
func (r *Reports) Close(of Source, p Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.N > 0 {
		r.addLocked(of, p)
	}
	*of.Closed() = true
}

func (r *Reports) addLocked(of Source, p Report) {
	if *of.Closed() {
		return
	}
	q := r.pending[of]
	if q == nil {
		if r.pending == nil {
			r.pending = make(map[Source]*queue)
		}
		q = new(queue)
		r.pending[of] = q
		go r.run(of, q) // ends when nothing waits
	}
	q.put(p)
}

func (q *queue) put(p Report) {
	late := p.Kind != Event && q.last[p.Kind] != nil
	switch {
	case q.n < mostReports && !late:
		q.waiting.Push(p)
		q.n += p.N
	case p.Kind == Event:
		q.lost += p.N
	default:
		if late {
			q.lost++
		}
		q.last[p.Kind] = &p
	}
}

// run makes the queued calls. If a callback ends the goroutine, another one takes over.
func (r *Reports) run(of Source, q *queue) {
	returned := false
	defer func() {
		if !returned {
			go r.run(of, q)
		}
	}()
	for p, ok := r.next(of, q); ok; p, ok = r.next(of, q) {
		guard.Run(r.Log, p.Name, func() { p.Call(p.at) }, of.LogAttrs()...)
	}
	returned = true
}

// next returns the next call. If there is none, it removes q and returns false.
func (r *Reports) next(of Source, q *queue) (p Report, ok bool) {
	r.mu.Lock()
	p, ok = q.next()
	lost := q.lost
	if !ok {
		q.lost = 0
		if lost == 0 {
			delete(r.pending, of)
		}
	}
	r.mu.Unlock()
	if ok || lost == 0 {
		return p, ok
	}
	r.Log.Warn("callbacks did not keep up with what they observe", append(of.LogAttrs(), "lost", lost)...)
	return r.next(of, q)
}

func (q *queue) next() (p Report, ok bool) {
	if q.waiting.Len() > 0 {
		first := q.waiting.Peek()
		p = *first
		q.n--
		if first.at++; first.at == first.N {
			q.waiting.Pop()
		}
		return p, true
	}
	for kind, last := range q.last {
		if last != nil {
			p = *last
			if last.at++; last.at == last.N {
				q.last[kind] = nil
			}
			return p, true
		}
	}
	return p, false
}
