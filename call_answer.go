package asterisque

import (
	"bytes"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/priority"
)

// smallDetail is the size of an abort's detail, in bytes, up to which the abort of a call that has
// run waits for no room: it is one for each pipe.
const smallDetail = 64

// answerer is what the answer to a call of the peer needs.
type answerer interface {
	// putAnswer hands the answer to the outbox, which has been counted. parked says that it has
	// waited for room, and that the caller may be anybody.
	putAnswer(result []byte, abort *Abort, held uint32, parked bool)

	// body returns how many bytes are held until the answer has left, besides what it is.
	body() int

	// shares reports whether the result is remembered, and so need not be copied until it leaves.
	shares() bool
}

// sendAnswer sends the answer to a call as soon as the session may send: at the outbound soft limit
// it is parked with the session, and nobody waits with it.
func (x *exchange) sendAnswer(to answerer, p priority.Priority, result []byte, abort *Abort, by answeredBy) {
	abort = x.sent(abort)
	held := heldClose(to.body(), result, abort)
	switch {
	case by == beyond:
		// nothing else bounds them but the hard limit, which ends a session whose peer goes on
		x.count(held)
	case x.terms.Room == nil || abort != nil && by != byReader && len(abort.Detail) <= smallDetail:
		x.count(held) // a peer without windows is held up before calls are taken: see waitOutbound
	case !x.outbound.queued.Load() && x.outbound.Reserve(int(held)):
	case x.outbound.Never(int(held)):
		abort := x.outbound.never(int(held))
		abort.Ran = codec.MaybeRan
		x.sendAnswer(to, p, nil, abort, by)
		return
	default:
		if !to.shares() {
			result = bytes.Clone(result)
		}
		x.park(to, p, result, abort, held, by)
		return
	}
	to.putAnswer(result, abort, held, false)
}

// park lets an answer wait for room. It holds its result, unless that is shared.
func (x *exchange) park(to answerer, p priority.Priority, result []byte, abort *Abort, held uint32, by answeredBy) {
	parked := heldParked + to.body()
	if !to.shares() { // otherwise it is counted where it is remembered
		parked += buffer.Allocated(len(result)) + heldByAbort(abort)
	}
	if _, ok := to.(*served); ok {
		parked += heldPlace // it is in the table until then
	}
	x.serving.calls.park(parked, by)
	put := func() {
		x.serving.calls.unpark(parked, by)
		to.putAnswer(result, abort, held, true)
	}
	if x.outbound.reserve(p, int(held), put) == nil {
		put()
	}
}

// refusal is the answer to a call of which nothing else is known.
type refusal struct {
	port
	cost   uint64 // that its Open has held; 0: none
	nested bool
}

// putAnswer implements answerer.
func (r *refusal) putAnswer(_ []byte, abort *Abort, held uint32, _ bool) {
	if r.cost > 0 {
		r.x.serving.calls.giveBack(r.cost, r.nested)
	}
	// an error means that there is nobody left to tell
	r.put(&outbox.Message{Type: message.CloseType, Abort: abort, Held: held}, carrier.Now)
	r.x.table.refused()
}

// body implements answerer.
func (r *refusal) body() int { return heldRefusal }

// shares implements answerer.
func (r *refusal) shares() bool { return false }

// turnAway refuses a call of which nothing is kept, and which the table counts as being refused. It
// has a flow of its own. What its Open has cost is given back when the refusal leaves.
func (x *exchange) turnAway(m *message.Open, a *Abort, cost uint64) {
	own := *a
	own.Ran = codec.Refused
	p := priority.Priority(m.Priority)
	r := &refusal{port: port{x: x, flow: outbox.AcceptedFlow(p, m.Pipe)}, cost: cost, nested: m.Meta.Nested}
	by := byReader
	if cost == 0 {
		by = beyond
	}
	x.sendAnswer(r, p, nil, &own, by)
}
