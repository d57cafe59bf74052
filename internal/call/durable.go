package call

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/idempotency"
)

// durableCall is a call of the peer with an idempotency key: it implements idempotency.Call.
type durableCall struct{ c *Inbound }

// Weight implements idempotency.Call.
func (d durableCall) Weight() int { return job(d).Weight() }

// begin reports whether c, which has an idempotency key, is to run. Otherwise c is answered
// with the result of the first call, at once or later.
func (d durableCall) begin() (run bool) {
	m, refused := d.c.calls().durable().Enter(idempotency.Identity{
		Owner: d.c.calls().Dispatcher().Owner(), Function: d.c.Function(), Stream: d.c.work.Windowed, Key: d.c.extras.key,
		Codec: d.c.calls().Coder.Values.Name(), Params: d.c.params,
	}, d)
	switch {
	case refused != nil:
		d.c.calls().Dispatcher().Return(job(d).Cost(), d.c.work.Nested)
		response(d).refuse(refused)
	case m == nil:
		return true
	case !d.await(m):
		d.c.work.ByReader = true // on the goroutine of the reader
		d.c.extras.durable.Shared = true
		response(d).send(m.Result, m.Abort)
	}
	return false
}

// await queues c, a repetition, for the answer to m, without its parameters, and no longer
// than its caller waits. It returns false if the answer is present.
func (d durableCall) await(m *idempotency.Answer) bool {
	if !d.c.work.Nested {
		// its parameters are not needed
		d.c.calls().Dispatcher().Return(uint64(d.c.work.Size), false)
		d.c.work.Size = 0
	}
	d.c.freeParams()
	d.c.calls().arrived(d.c.held()) // before another goroutine may answer it
	waits, displaced := d.c.calls().durable().Await(m, d)
	if !waits {
		job(d).countOut()
		return false
	}
	if displaced != nil {
		displaced.Awaited(nil, idempotency.ErrDisplaced)
	}
	if d.c.calls().Carrier.Context().Err() != nil { // the end of the session may have missed d.c
		d.endAwaiting()
	}
	return true
}

// endAwaiting is called when the caller of c, which has a key, cancels, or its session ends.
func (d durableCall) endAwaiting() {
	if d.c.calls().durable().Withdraw(d) {
		d.noLongerAwaits()
	}
}

// noLongerAwaits releases the budget that a repetition has held while it waited.
func (d durableCall) noLongerAwaits() {
	job(d).countOut()
	d.c.calls().Dispatcher().Return(job(d).Cost(), d.c.work.Nested)
}

// Role implements Call.
func (d durableCall) Role() *idempotency.Role { return &d.c.extras.durable }

// Cancel implements Call.
func (d durableCall) Cancel() { d.c.ending.end(canceled) }

// Awaited implements Call.
func (d durableCall) Awaited(result []byte, a *codec.Abort) {
	if a == idempotency.ErrDisplaced {
		d.c.Handler.Meter.ended(a)
	}
	d.noLongerAwaits()
	response(d).send(result, a)
}

// TakeOver implements Call.
func (d durableCall) TakeOver(params []byte) {
	job(d).countOut()
	d.c.params = params
	if !d.c.work.Nested {
		d.c.work.Size, d.c.extras.returned = uint32(len(params)), uint32(len(params))
	}
	if d.c.Handler.Key != nil {
		// the key function may block, or end the goroutine, which belongs to another call; ends by
		// itself
		go arrival(d).runInPlace()
		return
	}
	arrival(d).runInPlace()
}
