package idempotency

import (
	"bytes"
	"container/list"
	"slices"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/fifo"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/limits"
)

// Call is the interface of a peer's durable call for the Answers.
type Call interface {
	// Role returns the relation of the call to the answer of its key.
	Role() *Role

	// Weight returns the number of bytes that the call holds while it runs.
	Weight() int

	// Cancel ends the context of the call.
	Cancel()

	// TakeOver runs the call, a repetition, in place of the first call, which did not run. params
	// are the parameters.
	TakeOver(params []byte)

	// Awaited answers the call, a repetition that has waited.
	Awaited(result []byte, a *codec.Abort)
}

// Role is the relation of a [Call] to the answer of its key. It is guarded by the lock of Answers.
// The goroutine of the call may read First and Shared when a method of Answers has set them.
type Role struct {
	First   *Answer        // of the call that is the first of its key
	repeats *pendingAnswer // of a waiting repetition
	Shared  bool           // the answer for the call is remembered, and needs no copy
	open    bool           // an error of the call is not remembered
}

// Answer is the state of one durable call. Result and Abort are fixed, and not to be modified, once
// [Answers.Await] has returned false.
type Answer struct {
	key      string // these are fixed
	share    *share
	function uint16
	digest   [16]byte // of codec and parameters

	state   state // guarded by the lock of the Answers, as all below
	size    int   // bytes held
	Result  []byte
	Abort   *codec.Abort   // nil if the call has succeeded
	until   time.Time      // time of expiry
	pending *pendingAnswer // nil once the call is answered or removed
}

// pendingAnswer is the state of a durable call until it is answered.
type pendingAnswer struct {
	call    Call          // waits to run, or runs
	params  []byte        // of call, until it runs
	waiting []Call        // repetitions, the oldest first
	alone   *list.Element // in the list of orphans; nil while the call has its session
	lapse   *time.Timer   // cancels a call without a session
}

// share is the share of one owner.
type share struct {
	owner *quota.Owner               // fixed
	limit *dispatch.ConcurrencyLimit // limits its running durable calls; fixed

	held     limits.Amount       // guarded by the lock of the Answers, as all below
	answered fifo.Queue[*Answer] // in the order of the answers
	alone    int                 // number of its calls that run without a session
}

// tally adds to the memory that is counted for the owner.
func (s *share) tally(bytes int) { s.owner.Tally.Add(bytes) }

// state is the state of the answer to a durable call.
//
//	waiting ── begins ──▶ running ── ends alone ──▶ alone
//	  │ ▲ │                 │ ▲                      │ │
//	  │ │ │                 │ └──── is canceled ─────┘ │
//	  │ └─┼── passes to a repetition ──────┬───────────┤
//	  │   └──── is answered ──────▶ answered ◀─────────┤
//	  │                                │ lapses        │
//	  └─────── is dropped ─────────▶ forgotten ◀───────┘
type state uint8

const (
	waiting   state = iota // its call waits to run
	running                // no answer is Repeatable any more
	alone                  // its call runs, and the session has ended
	answered               // repetitions get the answer
	forgotten              // the next call with its key is the first
)

// event is an event of a durable answer.
type event uint8

const (
	begins   event = iota // its call begins
	outlives              // its call runs when the session ends
	cancels               // its call is canceled, as too many run without a session
	ends                  // its call has run
	passes                // its call did not run, and a repetition takes its place
	dropped               // its call did not run, and is not repeated
	lapses                // it has expired
)

// next returns the state after e. It returns ok == false for an e that is impossible in s.
func (s state) next(e event) (_ state, ok bool) {
	switch e {
	case begins:
		if s == alone { // the session has ended before the handler began
			return s, true
		}
		return running, s == waiting
	case outlives:
		return alone, s == waiting || s == running
	case cancels:
		return running, s == alone
	case ends:
		return answered, s < answered
	case passes:
		return waiting, s < answered
	case dropped:
		return forgotten, s < answered
	case lapses:
		return forgotten, s == answered
	}
	return s, false
}

// Limit returns the limit of the running durable calls of the caller's owner.
func (m *Answer) Limit() *dispatch.ConcurrencyLimit { return m.share.limit }

// moveLocked applies e, or returns false if e is impossible now.
func (m *Answer) moveLocked(e event) (ok bool) {
	next, ok := m.state.next(e)
	if ok {
		m.state = next
	}
	return ok
}

// weightOf returns the bytes of an answer.
func weightOf(result []byte, a *codec.Abort) int {
	return len(result) + aborts.Size(a)
}

// keepLocked keeps an answer.
func (m *Answer) keepLocked(result []byte, a *codec.Abort) {
	m.Result = bytes.Clone(result)
	if a != nil {
		m.Abort = &codec.Abort{Code: a.Code, Message: a.Message, Detail: bytes.Clone(a.Detail)}
	}
}

// mostRepetitions bounds the repetitions that wait for one call.
const mostRepetitions = 8

// addLocked queues c, a repetition. It returns the one that loses its place, or nil.
func (p *pendingAnswer) addLocked(c Call) (displaced Call) {
	c.Role().repeats = p
	p.waiting = append(p.waiting, c)
	if len(p.waiting) > mostRepetitions {
		displaced = p.waiting[0]
		p.removeLocked(displaced)
	}
	return displaced
}

// removeLocked removes a waiting repetition.
func (p *pendingAnswer) removeLocked(c Call) {
	c.Role().repeats = nil
	p.waiting = slices.DeleteFunc(p.waiting, func(o Call) bool { return o == c })
}
