package call

import (
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/limits"
)

// The view of a served call for the dispatcher: see job.

// Task implements job.
func (c *Inbound) Task() *dispatch.Task { return &c.work }

// Limit implements job: it returns the concurrency limit of its function, or else that
// of its owner, if the call is durable. A call nested within the same function waits for no
// concurrency limit, and a nested call waits for neither owner nor worker.
func (c *Inbound) Limit() *dispatch.ConcurrencyLimit {
	g := c.Handler.Limit
	switch {
	case g != nil && c.withinSame(nil):
		return nil
	case g != nil || c.work.Nested || c.firstOf() == nil:
		return g
	}
	return c.firstOf().Limit()
}

// OnlyWaits implements job.
func (c *Inbound) OnlyWaits() bool { return c.Handler.OnlyWaits }

// Turn implements job.
func (c *Inbound) Turn() (*dispatch.KeyedOrder, *dispatch.Turn) {
	if c.extras == nil || c.extras.turn == nil {
		return nil, nil
	}
	return &c.Handler.Key.Keys, c.extras.turn
}

// withinSame reports whether c is nested within a call of the same function; if key is not nil, of
// the same function and key.
func (c *Inbound) withinSame(key *uint64) bool {
	var by *Inbound
	for o := c.parent; o != nil && o.by != nil; o = by.parent {
		by = o.by.(*Inbound)
		if by.Handler != c.Handler {
			continue
		}
		if _, t := by.Turn(); key == nil || t.SameKey(*key) {
			return true
		}
	}
	return false
}

// Weight implements job.
func (c *Inbound) Weight() int {
	return c.heldParams() + c.heldMetadata() + c.work.DecodedSize.Bytes()
}

// Cost implements job.
func (c *Inbound) Cost() uint64 {
	t := &c.x.terms
	cost := uint64(c.work.Size) + t.Overhead
	if c.work.Windowed {
		cost += t.Early
	}
	if c.extras != nil {
		cost += uint64(c.extras.strings) - uint64(c.extras.returned)
	}
	return cost
}

// Dispatcher implements job.
func (c *Inbound) Dispatcher() *dispatch.Dispatcher { return c.x.Dispatcher() }

// Begin implements job: the Open no longer waits, and the Blocks have a window of their own.
func (c *Inbound) Begin(h limits.Hold) {
	c.countOut()
	if c.pipe != nil {
		(*piping.End)(c.pipe).BeginHandler(h)
	}
}

// countOut subtracts the waiting Open.
func (c *Inbound) countOut() { c.x.Inbound.Remove(1, c.held()) }

// Unlist implements job.
func (c *Inbound) Unlist() {
	c.countOut()
	c.freeParams()
}

// Abandon implements job.
func (c *Inbound) Abandon() {
	if m := c.firstOf(); m != nil {
		c.x.durable().HandOn(m)
	}
}

// dispatchPort is the session as the Output of its dispatcher, and of the Blocks of its
// calls.
type dispatchPort struct{ *Calls }

// Grant implements Output.
func (o dispatchPort) Grant(total uint64) {
	o.Carrier.Control(message.Credit{Opens: true, Limit: total}, carrier.Now)
}

// WaitOutbound implements Output: it holds a worker back while the session is at its
// outbound soft limit, so that results do not pile up. It returns at the inbound soft limit: there
// the waiting calls have to be taken before reading can resume, and two peers that wait for each
// other's reading would deadlock.
func (o dispatchPort) WaitOutbound() {
	for room := o.Outbound.Room(); room != nil; room = o.Outbound.Room() {
		full := o.Inbound.Full()
		if full == nil {
			return
		}
		select {
		case <-room:
		case <-full:
		case <-o.Carrier.Context().Done():
			return
		}
	}
}

// MustWaitOutbound implements Output.
func (o dispatchPort) MustWaitOutbound() bool {
	return o.Outbound.State() >= limits.Soft && o.Inbound.State() < limits.Soft && o.Carrier.Context().Err() == nil
}

// Taken implements piping.Ledger.
func (o dispatchPort) Taken(messages, bytes int) { o.Inbound.Remove(messages, bytes) }

// Shelter implements piping.Ledger.
func (o dispatchPort) Shelter(bytes int) bool { return o.serving.dispatcher.Reserve(bytes) }
