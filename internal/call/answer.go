package call

import (
	"bytes"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/priority"
)

// smallDetail is the size of an abort's detail, in bytes, up to which the abort of a call that has
// run does not wait for budget: there is one for each pipe.
const smallDetail = 64

// responseWriter is the interface for the answer to a call of the peer.
type responseWriter interface {
	// putAnswer hands the answer, which has been counted, to the outbox. parked reports that the
	// answer has waited, and that the caller may be any goroutine.
	putAnswer(result []byte, abort *codec.Abort, held uint32, parked bool)

	// body returns the count of the state that is held until the answer has left.
	body() uint32

	// shares reports whether the result is remembered, and so needs no copy until it leaves.
	shares() bool
}

// sendAnswer sends the answer to a call as soon as the session may send: at the outbound soft limit
// the answer is parked with the session, and no goroutine waits.
func (x *Calls) sendAnswer(to responseWriter, p priority.Priority, result []byte, abort *codec.Abort, by dispatch.AnsweredBy) {
	abort = x.sent(abort)
	held := heldClose(result, abort) + to.body()
	switch {
	case by == dispatch.BeyondGrant:
		// bounded only by the hard limit, which ends the session of a persistent peer
		x.count(held)
	case x.out.terms.Budget == nil || abort != nil && by != dispatch.ByReader && len(abort.Detail) <= smallDetail:
		x.count(held) // a peer without windows waits before its calls: see WaitOutbound
	case x.out.limit.TryAcquire(int(held)):
	case x.out.limit.Never(int(held)):
		x.sendBeyondHard(to, p, held, by)
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

// sendBeyondHard sends an error in place of an answer that exceeds the hard limit by itself.
func (x *Calls) sendBeyondHard(to responseWriter, p priority.Priority, held uint32, by dispatch.AnsweredBy) {
	a := x.out.beyondHard(int(held))
	a.Ran = codec.MaybeRan
	if x.out.limit.Never(int(heldClose(nil, x.sent(a)) + to.body())) {
		by = dispatch.BeyondGrant // and so does the error: it ends the session
	}
	x.sendAnswer(to, p, nil, a, by)
}

// park queues an answer until it may be sent. The queue holds its result, unless that is shared.
func (x *Calls) park(to responseWriter, p priority.Priority, result []byte, abort *codec.Abort, held uint32, by dispatch.AnsweredBy) {
	parked := int(held)
	if to.shares() { // the result is counted where it is remembered
		parked = flow.LeastOverhead
	}
	x.serving.dispatcher.Park(parked, by)
	put := func(ok bool) {
		x.serving.dispatcher.Unpark(parked, by)
		if ok {
			to.putAnswer(result, abort, held, true)
		} else {
			x.sendBeyondHard(to, p, held, by)
		}
	}
	if x.out.limit.Acquire(&flow.Waiter{Priority: p, Bytes: int(held), Granted: put}) {
		put(true)
	}
}

// rejectedCall is the rejection of a call without further state.
type rejectedCall struct {
	transport callTransport
	cost      uint64 // held by its Open; 0: none
	nested    bool
}

// putAnswer implements responseWriter.
func (r *rejectedCall) putAnswer(_ []byte, abort *codec.Abort, held uint32, _ bool) {
	if r.cost > 0 {
		r.transport.x.Dispatcher().Return(r.cost, r.nested)
	}
	// an error means that the peer is lost
	r.transport.put(&outbox.Message{Type: message.CloseType, Abort: abort, Held: held}, carrier.Now)
	r.transport.x.Table.refused()
}

// body implements responseWriter.
func (r *rejectedCall) body() uint32 { return 0 }

// shares implements responseWriter.
func (r *rejectedCall) shares() bool { return false }

// turnAway rejects a call without an endpoint, which the table counts in refusing. The rejection
// has a flow of its own. The cost of the Open is released when the rejection leaves.
func (x *Calls) turnAway(m *message.Open, a *codec.Abort, cost uint64) {
	own := *a
	own.Ran = codec.Refused
	p := priority.Priority(m.Priority)
	r := &rejectedCall{transport: callTransport{x: x, flow: outbox.AcceptedFlow(p, m.Pipe)}, cost: cost, nested: m.Meta.Nested}
	by := dispatch.ByReader
	if cost == 0 {
		by = dispatch.BeyondGrant
	}
	x.sendAnswer(r, p, nil, &own, by)
}

// response is the answer to a call of the peer: it implements responseWriter.
type response struct{ c *Inbound }

// answer ends the call with result or a. It does nothing if the call has ended.
func (r response) answer(result []byte, a *codec.Abort) {
	r.c.Handler.Meter.ended(a)
	if m := r.c.extras.first(); m != nil {
		r.c.calls().durable().Finish(m, result, a)
	}
	r.send(result, a)
}

// send sends the answer.
func (r response) send(result []byte, a *codec.Abort) {
	switch {
	case r.c.transport.pipe == nil:
		r.close(result, a)
	case a == nil:
		(*piping.End)(r.c.transport.pipe).Close(result)
	default:
		r.c.transport.pipe.Abort(r.c.calls().sent(a)) // the pipe keeps a until the Close has left
	}
}

// close ends the call with result or abort, at the end of its pipe if it has one.
func (r response) close(result []byte, abort *codec.Abort) {
	if r.c.calls().serving.private && r.c.transport.pipe != nil && abort != nil && abort.Cause != nil {
		// the handler has aborted the pipe
		abort = handlerRun(r).toldAborting(abort)
	}
	if abort != nil {
		// the Close overtakes waiting Blocks
		r.c.calls().Carrier.Cancel(&r.c.transport.flow, givenUp(abort))
	}
	by := dispatch.ByWorker
	switch refused := abort != nil && abort.Ran == codec.Refused; {
	case refused && (abort.Code == codec.WindowViolation || r.c.work.Nested && abort.Code == codec.Overloaded):
		by = dispatch.BeyondGrant
	case r.c.work.ByReader, refused:
		by = dispatch.ByReader
	case r.c.work.Nested:
		by = dispatch.ByLent
	}
	r.c.calls().sendAnswer(r, r.c.work.Priority, result, abort, by)
	r.c.ending.end(canceled)
}

// refuse ends a call that will not run.
func (r response) refuse(a *codec.Abort) {
	r.c.Handler.Meter.ended(a)
	if m := r.c.extras.first(); m != nil {
		r.c.calls().durable().HandOn(m)
	}
	refused := *r.c.calls().sent(a)
	refused.Ran = codec.Refused
	if r.c.transport.pipe != nil {
		// Blocks may have arrived already, and will not be taken
		(*piping.End)(r.c.transport.pipe).CloseArrived(nil, &refused)
	}
	r.close(nil, &refused)
}

// putAnswer implements responseWriter.
func (r response) putAnswer(result []byte, abort *codec.Abort, held uint32, parked bool) {
	when := carrier.Now
	if r.c.work.ByReader && !parked && !r.c.calls().out.limit.Queued() {
		when = carrier.AfterReading // answers to all calls that have arrived leave together
	}
	r.c.transport.putClose(result, abort, held, when)
	if r.c.work.ByReader {
		// not earlier, so that grants bound the waiting answers
		r.c.calls().Dispatcher().Return(job(r).Cost(), r.c.work.Nested)
	}
}
