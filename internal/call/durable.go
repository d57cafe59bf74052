package call

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/idempotency"
)

// beginDurable reports whether c, which has an idempotency key, is to run. Otherwise c is answered
// with the result of the first call, at once or later.
func (c *Inbound) beginDurable() (run bool) {
	m, refused := c.x.durable().Enter(idempotency.Identity{
		Owner: c.x.Dispatcher().Owner(), Function: c.Function(), Stream: c.work.Windowed, Key: c.extras.key,
		Codec: c.x.Values.Name(), Params: c.params,
	}, c)
	switch {
	case refused != nil:
		c.x.Dispatcher().Return(c.Cost(), c.work.Nested)
		c.Refuse(refused)
	case m == nil:
		return true
	case !c.awaitAnswer(m):
		c.work.ByReader = true // on the goroutine of the reader
		c.extras.durable.Shared = true
		c.reply(m.Result, m.Abort)
	}
	return false
}

// awaitAnswer queues c, a repetition, for the answer to m, without its parameters, and no longer
// than its caller waits. It returns false if the answer is present.
func (c *Inbound) awaitAnswer(m *idempotency.Answer) bool {
	if !c.work.Nested {
		c.x.Dispatcher().Return(uint64(c.work.Size), false) // its parameters are not needed
		c.work.Size = 0
	}
	c.freeParams()
	c.x.arrived(c.held()) // before another goroutine may answer it
	waits, displaced := c.x.durable().Await(m, c)
	if !waits {
		c.countOut()
		return false
	}
	if displaced != nil {
		displaced.Awaited(nil, idempotency.ErrDisplaced)
	}
	if c.x.Carrier.Context().Err() != nil { // the end of the session may have missed c
		c.endAwaiting()
	}
	return true
}

// endAwaiting is called when the caller of c, which has a key, cancels, or its session ends.
func (c *Inbound) endAwaiting() {
	if c.x.durable().Withdraw(c) {
		c.noLongerAwaits()
	}
}

// noLongerAwaits releases the budget that a repetition has held while it waited.
func (c *Inbound) noLongerAwaits() {
	c.countOut()
	c.x.Dispatcher().Return(c.Cost(), c.work.Nested)
}

// Role implements Call.
func (c *Inbound) Role() *idempotency.Role { return &c.extras.durable }

// Cancel implements Call.
func (c *Inbound) Cancel() { c.end(canceled) }

// Awaited implements Call.
func (c *Inbound) Awaited(result []byte, a *codec.Abort) {
	if a == idempotency.ErrDisplaced {
		c.Handler.Meter.ended(a)
	}
	c.noLongerAwaits()
	c.reply(result, a)
}
