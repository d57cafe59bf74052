package asterisque

import (
	"bytes"
	"container/list"
	"slices"
	"time"

	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/fifo"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/limits"
)

// durableJob is the interface of a peer's durable call for the durableAnswers.
type durableJob interface {
	// role returns the relation of the call to the answer of its key.
	role() *durableRole

	// Weight returns the number of bytes that the call holds while it runs.
	Weight() int

	// cancel ends the context of the call.
	cancel()

	// TakeOver runs the call, a repetition, in place of the first call, which did not run. params
	// are the parameters.
	takeOver(params []byte)

	// awaited answers the call, a repetition that has waited.
	awaited(result []byte, a *Abort)
}

// durableRole is the relation of a call to the answer of its key. It is guarded by the lock of the
// durableAnswers.
type durableRole struct {
	first   *durableAnswer // of the call that is the first of its key
	repeats *pendingAnswer // of a waiting repetition
	shared  bool           // the answer for the call is remembered, and needs no copy
	open    bool           // an error of the call is not remembered
}

// durableAnswer is the state of one durable call.
type durableAnswer struct {
	key      string // these are fixed
	share    *durableShare
	function uint16
	digest   [16]byte // of codec and parameters

	state   durableState // guarded by the lock of the durableAnswers, as all below
	size    int          // bytes held
	result  []byte
	abort   *Abort
	until   time.Time      // time of expiry
	pending *pendingAnswer // nil once the call is answered or removed
}

// pendingAnswer is the state of a durable call until it is answered.
type pendingAnswer struct {
	call    durableJob    // waits to run, or runs
	params  []byte        // of call, until it runs
	waiting []durableJob  // repetitions, the oldest first
	alone   *list.Element // in the list of orphans; nil while the call has its session
	lapse   *time.Timer   // cancels a call without a session
}

// durableShare is the share of one owner.
type durableShare struct {
	owner *quota.Owner               // fixed
	limit *dispatch.ConcurrencyLimit // limits its running durable calls; fixed

	held     limits.Amount              // guarded by the lock of the durableAnswers, as all below
	answered fifo.Queue[*durableAnswer] // in the order of the answers
	alone    int                        // number of its calls that run without a session
}

// tally adds to the memory that is counted for the owner.
func (s *durableShare) tally(bytes int) { s.owner.Tally.Add(bytes) }

// durableState is the state of the answer to a durable call.
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
	durableRunning                       // no answer is Repeatable any more
	durableAlone                         // its call runs, and the session has ended
	durableAnswered                      // repetitions get the answer
	durableForgotten                     // the next call with its key is the first
)

// durableEvent is an event of a durable answer.
type durableEvent uint8

const (
	durableBegins   durableEvent = iota // its call begins
	durableOutlives                     // its call runs when the session ends
	durableCancel                       // its call is canceled, as too many run without a session
	durableEnds                         // its call has run
	durablePasses                       // its call did not run, and a repetition takes its place
	durableDropped                      // its call did not run, and is not repeated
	durableLapses                       // it has expired
)

// next returns the state after e. It returns ok == false for an e that is impossible in s.
func (s durableState) next(e durableEvent) (_ durableState, ok bool) {
	switch e {
	case durableBegins:
		if s == durableAlone { // the session has ended before the handler began
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

// moveLocked applies e, or returns false if e is impossible now.
func (m *durableAnswer) moveLocked(e durableEvent) (ok bool) {
	next, ok := m.state.next(e)
	if ok {
		m.state = next
	}
	return ok
}

// weightOf returns the bytes of an answer.
func weightOf(result []byte, a *Abort) int { return buffer.Allocated(len(result)) + heldByAbort(a) }

// keepLocked keeps an answer.
func (m *durableAnswer) keepLocked(result []byte, a *Abort) {
	m.result = bytes.Clone(result)
	if a != nil {
		m.abort = &Abort{Code: a.Code, Message: a.Message, Detail: bytes.Clone(a.Detail)}
	}
}

// mostRepetitions bounds the repetitions that wait for one call.
const mostRepetitions = 8

// addLocked queues c, a repetition. It returns the one that loses its place, or nil.
func (p *pendingAnswer) addLocked(c durableJob) (displaced durableJob) {
	c.role().repeats = p
	p.waiting = append(p.waiting, c)
	if len(p.waiting) > mostRepetitions {
		displaced = p.waiting[0]
		p.removeLocked(displaced)
	}
	return displaced
}

// removeLocked removes a waiting repetition.
func (p *pendingAnswer) removeLocked(c durableJob) {
	c.role().repeats = nil
	p.waiting = slices.DeleteFunc(p.waiting, func(o durableJob) bool { return o == c })
}
