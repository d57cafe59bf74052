package call

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/piping"
)

// The answer to a served call.

// answer ends the call with result or a. It does nothing if the call has ended.
func (c *Inbound) answer(result []byte, a *codec.Abort) {
	c.Handler.Meter.ended(a)
	if m := c.firstOf(); m != nil {
		c.x.durable().Finish(m, result, a)
	}
	c.reply(result, a)
}

// reply sends the answer.
func (c *Inbound) reply(result []byte, a *codec.Abort) {
	switch {
	case c.pipe == nil:
		c.Close(result, a)
	case a == nil:
		(*piping.End)(c.pipe).Close(result)
	default:
		c.pipe.Abort(c.x.sent(a)) // the pipe keeps a until the Close has left
	}
}

// Close implements piping.Port.
func (c *Inbound) Close(result []byte, abort *codec.Abort) {
	if c.x.serving.private && c.pipe != nil && abort != nil && abort.Cause != nil {
		// the handler has aborted the pipe
		abort = c.toldAborting(abort)
	}
	if abort != nil {
		c.x.Carrier.Cancel(&c.flow, givenUp(abort)) // the Close overtakes waiting Blocks
	}
	by := dispatch.ByWorker
	switch refused := abort != nil && abort.Ran == codec.Refused; {
	case refused && (abort.Code == codec.WindowViolation || c.work.Nested && abort.Code == codec.Overloaded):
		by = dispatch.BeyondGrant
	case c.work.ByReader, refused:
		by = dispatch.ByReader
	case c.work.Nested:
		by = dispatch.ByLent
	}
	c.x.sendAnswer(c, c.work.Priority, result, abort, by)
	c.end(canceled)
}

// Refuse ends a call that will not run.
func (c *Inbound) Refuse(a *codec.Abort) {
	c.Handler.Meter.ended(a)
	if m := c.firstOf(); m != nil {
		c.x.durable().HandOn(m)
	}
	r := *c.x.sent(a)
	r.Ran = codec.Refused
	if c.pipe != nil {
		// Blocks may have arrived already, and will not be taken
		(*piping.End)(c.pipe).CloseArrived(nil, &r)
	}
	c.Close(nil, &r)
}

// putAnswer implements responseWriter.
func (c *Inbound) putAnswer(result []byte, abort *codec.Abort, held uint32, parked bool) {
	when := carrier.Now
	if c.work.ByReader && !parked && !c.x.Outbound.queued.Load() {
		when = carrier.AfterReading // answers to all calls that have arrived leave together
	}
	c.putClose(result, abort, held, when)
	if c.work.ByReader {
		// not earlier, so that grants bound the waiting answers
		c.x.Dispatcher().Return(c.Cost(), c.work.Nested)
	}
}
