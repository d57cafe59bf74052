package asterisque

import (
	"bytes"
	"container/list"
	"slices"
	"time"

	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/fifo"
	"github.com/asterisque-go/asterisque/limits"
)

// durableJob is a durable call of a peer, as those see it who remember its answer.
type durableJob interface {
	// role returns what the call is to the answer of its key.
	role() *durableRole

	// weight returns how many bytes it holds while it runs.
	weight() int

	// cancel ends its context.
	cancel()

	// takeOver lets it run, a repetition, in the place of the first call, which did not; params are
	// the parameters.
	takeOver(params []byte)

	// awaited answers it, a repetition that has waited.
	awaited(result []byte, a *Abort)
}

// durableRole is what a call is to the answer of its key. It is guarded by the lock of the
// durableAnswers.
type durableRole struct {
	first   *durableAnswer // of the call that is the first of its key
	repeats *pendingAnswer // of a repetition that waits
	shared  bool           // the answer that the call gets is remembered, and need not be copied
	open    bool           // an error of it is not to be remembered
}

// durableAnswer is what is known of one durable call.
type durableAnswer struct {
	key      string // these are fixed
	share    *durableShare
	function uint16
	digest   [16]byte // of the codec and the parameters

	state   durableState // guarded by the lock of the durableAnswers, as all below
	size    int          // bytes that it holds
	result  []byte
	abort   *Abort
	until   time.Time      // then it is forgotten
	pending *pendingAnswer // nil once it is answered, or forgotten
}

// pendingAnswer is what is known of a durable call only until it is answered.
type pendingAnswer struct {
	call    durableJob    // that waits to run, or runs
	params  []byte        // of it, until it runs
	waiting []durableJob  // repetitions, the oldest first
	alone   *list.Element // of the orphans; nil while it has its session
	lapse   *time.Timer   // ends the context of one that is alone
}

// durableShare is what is remembered of one owner.
type durableShare struct {
	owner *owner // fixed
	gate  *gate  // through which its durable calls run; fixed

	held     limits.Amount              // guarded by the lock of the durableAnswers, as all below
	answered fifo.Queue[*durableAnswer] // in their order
	alone    int                        // how many of its calls run on without a session
}

// durableState says how far the answer to a durable call has got.
//
//	waiting ── begins ──▶ running ── ends alone ──▶ alone
//	  │ ▲ │                 │ ▲                      │ │
//	  │ │ │                 │ └──── is canceled ─────┘ │
//	  │ └─┼── passes to a repetition ──────┬───────────┤
//	  │   └──── is answered ──────▶ answered ◀─────────┤
//	  │                                │ lapses        │
//	  └─────── is dropped ─────────▶ forgotten ◀───────┘
type durableState uint8

const (
	durableWaiting   durableState = iota // its call waits to run
	durableRunning                       // no answer says any more that it can be repeated
	durableAlone                         // its call runs, and the session has ended
	durableAnswered                      // repetitions get the answer
	durableForgotten                     // the next call with its key is the first
)

// durableEvent is what may happen to a durable answer.
type durableEvent uint8

const (
	durableBegins   durableEvent = iota // its call begins
	durableOutlives                     // its call runs when the session ends
	durableCancel                       // its call is canceled, because too many run on alone
	durableEnds                         // its call has run
	durablePasses                       // its call did not run, and a repetition takes its place
	durableDropped                      // its call did not run, and nobody repeats it
	durableLapses                       // it has been remembered for long enough
)

// next returns the state after e, or ok == false if e cannot happen in s.
func (s durableState) next(e durableEvent) (_ durableState, ok bool) {
	switch e {
	case durableBegins:
		if s == durableAlone { // the session has ended on the way to the handler
			return s, true
		}
		return durableRunning, s == durableWaiting
	case durableOutlives:
		return durableAlone, s == durableWaiting || s == durableRunning
	case durableCancel:
		return durableRunning, s == durableAlone
	case durableEnds:
		return durableAnswered, s < durableAnswered
	case durablePasses:
		return durableWaiting, s < durableAnswered
	case durableDropped:
		return durableForgotten, s < durableAnswered
	case durableLapses:
		return durableForgotten, s == durableAnswered
	}
	return s, false
}

// moveLocked lets e happen to m, or reports false if it cannot happen now.
func (m *durableAnswer) moveLocked(e durableEvent) (ok bool) {
	next, ok := m.state.next(e)
	if ok {
		m.state = next
	}
	return ok
}

// weightOf returns what an answer holds.
func weightOf(result []byte, a *Abort) int { return buffer.Allocated(len(result)) + heldByAbort(a) }

// keepLocked keeps an answer.
func (m *durableAnswer) keepLocked(result []byte, a *Abort) {
	m.result = bytes.Clone(result)
	if a != nil {
		m.abort = &Abort{Code: a.Code, Message: a.Message, Detail: bytes.Clone(a.Detail)}
	}
}

// mostRepetitions is how many may wait for one call.
const mostRepetitions = 8

// addLocked lets c, a repetition, wait. It returns the one that finds no place any more, or nil.
func (p *pendingAnswer) addLocked(c durableJob) (displaced durableJob) {
	c.role().repeats = p
	p.waiting = append(p.waiting, c)
	if len(p.waiting) > mostRepetitions {
		displaced = p.waiting[0]
		p.removeLocked(displaced)
	}
	return displaced
}

// removeLocked takes a repetition out that waits.
func (p *pendingAnswer) removeLocked(c durableJob) {
	c.role().repeats = nil
	p.waiting = slices.DeleteFunc(p.waiting, func(o durableJob) bool { return o == c })
}
