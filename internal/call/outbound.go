package call

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/priority"
)

// Options are the properties of a call from this side.
type Options struct {
	Priority priority.Priority
	Loss     uint8
	Durable  bool
	FailFast bool // does not wait for a session: see Connection
	TTL      time.Duration
	Trace    []byte         // travels with the call
	Key      []byte         // of a durable call; nil: a Connection draws one
	Sent     func()         // called when a durable call has been sent
	Buffer   []byte         // empty; its capacity may receive the result
	Metadata map[string]any // takes precedence over that of the context
}

// Outbound is a unary call from this side: an endpoint that waits for a Close and has no inbox, no
// window and no state machine. The goroutine that takes the call out of the session's table, or out
// of the outbox, ends the call and wakes the caller. An [outbox.Pool] reuses calls. Only a caller
// that was woken returns its call to the Pool: no other goroutine has the call then.
type Outbound struct {
	transport callTransport
	priority  priority.Priority
	reserved  reservation    // held until the end of the call
	open      outbox.Message // belongs to the outbox until it has departed
	done      chan struct{}  // holds one token once result or abort is set
	abort     *codec.Abort
	Result    []byte // before done: destination if own is set
	Own       bool   // the application owns the result, which is not in buf
	sent      bool   // put into the outbox, and the caller was not woken yet
	// of a typed call: parameters, and unless own is set the result; kept for the next call
	buf      []byte
	Operands any // of a typed call; see operandsFor
}

// MaxKeptResult is the largest result buffer, in bytes, that is kept for the next call.
const MaxKeptResult = 16 << 10

// Call makes a unary call with params as they are, and waits for its result, which the caller owns.
func (x *Calls) Call(ctx context.Context, function uint16, params []byte, cfg *Options) ([]byte, error) {
	c := x.NewCall(cfg, true)
	defer c.Free()
	if a := c.Do(ctx, function, params, cfg); a != nil {
		return nil, a
	}
	return c.Result, nil
}

// NewCall returns a call. If own is set, the application owns the result, unmodified, and it may be
// put into the buffer of cfg.
func (x *Calls) NewCall(cfg *Options, own bool) *Outbound {
	c, ok := x.out.common.spares.Get().(*Outbound)
	if !ok {
		c = &Outbound{done: make(chan struct{}, 1)}
		c.open.Type, c.open.Departer = message.OpenType, c
	}
	c.transport = callTransport{x: x, flow: outbox.NewFlow(cfg.Priority)}
	c.priority, c.Own, c.Result = cfg.Priority, own, cfg.Buffer
	return c
}

// Free ends c and returns it to the pool. The result is lost, unless the application owns it.
func (c *Outbound) Free() {
	x := c.transport.x
	if c.sent { // the caller's goroutine is ending, because of a Wire, say
		c.leave()
		x.out.giveBack(&c.reserved)
		return // not reused: another goroutine may be about to wake its caller
	}
	x.out.giveBack(&c.reserved)
	x.out.common.spares.Put(&x.Carrier, c)
}

// Reset implements outbox.Pooled.
func (c *Outbound) Reset() {
	c.transport, c.reserved, c.abort = callTransport{}, reservation{}, nil
	c.open.Payload, c.open.Meta = nil, nil
	if c.Result = nil; cap(c.buf) > MaxKeptResult {
		c.buf = nil
	}
}

// Do makes the call, as soon as the limits allow, and waits for its end.
//
// Many goroutines wait here at a time, each with its stack, which moves between processors: so the
// common case is in one function, with few variables.
func (c *Outbound) Do(ctx context.Context, function uint16, params []byte, cfg *Options) *codec.Abort {
	if cfg.TTL > 0 {
		return c.doWithin(ctx, function, params, cfg)
	}
	c.open.Function, c.open.Payload = function, params
	var a *codec.Abort
	if c.reserved, a = c.calls().out.reserve(ctx, &c.open, cfg, nil); a != nil {
		return a
	}
	c.sent = true
	if err := c.calls().Carrier.Enter(&c.transport.flow, &c.open); err != nil {
		c.sent = false
		c.calls().out.limit.Remove(1, int(c.open.Held))
		c.unsent()
		return codec.AbortOf(c.calls().sendError(err))
	}
	if cfg.Sent != nil {
		cfg.Sent()
	}
	if ctx.Done() == nil { // a receive is cheaper than a select
		<-c.done
		c.sent = false
		return c.abort
	}
	a = c.wait(ctx)
	c.sent = false
	return a
}

// wait waits for the end of the call, or of ctx.
func (c *Outbound) wait(ctx context.Context) *codec.Abort {
	select {
	case <-c.done:
		return c.abort
	case <-ctx.Done():
		return c.giveUp(aborts.OfContext(ctx))
	}
}

// doWithin is Do for a call with a time to live.
func (c *Outbound) doWithin(ctx context.Context, function uint16, params []byte, cfg *Options) *codec.Abort {
	ctx, cancel := context.WithTimeout(ctx, cfg.TTL)
	defer cancel()
	own := *cfg
	own.TTL = 0
	return c.Do(ctx, function, params, &own)
}

// giveUp cancels the call with a, unless it has ended already.
func (c *Outbound) giveUp(a *codec.Abort) *codec.Abort {
	departed, unsent, there := c.cancel(a)
	switch {
	case !departed:
		select {
		case <-c.done: // the session ended first, and discarded the Open
			return c.abort
		default:
		}
	case !there:
		<-c.done // another goroutine has taken it out of the table, and is about to signal
		if a = c.abort; a == nil {
			return nil
		}
	}
	if !departed || unsent && a.Ran == codec.MaybeRan {
		return aborts.NeverSent(a)
	}
	return a
}

// leave is giveUp at the end of the caller's goroutine: no goroutine waits for the call any more.
func (c *Outbound) leave() { c.cancel(codec.ErrCanceled) }

// unsent releases the peer's budget that the Open would have used: it was not sent.
func (c *Outbound) unsent() { c.calls().out.unsent(c.reserved.parent, c.reserved.cost) }

// cancel removes the call from the outbox and the table, and sends a to the peer if the peer knows
// the call. departed and unsent are as for [outbox.Outbox.Cancel]. there reports that the call was
// in the table, so that no other goroutine wakes the caller.
func (c *Outbound) cancel(a *codec.Abort) (departed, unsent, there bool) {
	departed, unsent = c.calls().Carrier.Cancel(&c.transport.flow, givenUp(a))
	if unsent {
		c.unsent()
	}
	if there = departed && c.calls().remove(c.transport.id()); there && !unsent {
		c.calls().abort(c.transport.id(), c.priority, a)
	}
	return departed, unsent, there
}

// abort sends the cancellation of a call of this side to the peer. It has a flow of its own: the
// call may be reused while the Close waits.
func (x *Calls) abort(id uint64, p priority.Priority, a *codec.Abort) {
	a = sentWithin(a, min(x.Carrier.MaxSize(), message.MaxPart))
	held := heldClose(nil, a)
	x.count(held)
	one := callTransport{x: x, flow: outbox.AcceptedFlow(p, id)}
	// an error means that the peer is lost
	one.put(&outbox.Message{Type: message.CloseType, Abort: a, Held: held}, carrier.Now)
}

// Flow implements outbox.Pooled.
func (c *Outbound) Flow() *outbox.Flow { return c.transport.Flow() }

// calls returns the calls of the session.
func (c *Outbound) calls() *Calls { return c.transport.x }

// Depart implements outbox.Departer.
func (c *Outbound) Depart(id uint64) {
	c.calls().Table.depart(id, c)
}

// Discard implements outbox.Departer: the call was not sent.
func (c *Outbound) Discard(why outbox.Reason, begun bool) {
	if begun && !c.calls().Table.remove(c.transport.id()) {
		return // another goroutine is about to wake the caller
	}
	c.abort = c.calls().discarded(c.unsent, why)
	c.done <- struct{}{}
}

// block implements endpoint. A unary call ignores Blocks.
func (c *Outbound) block(message.Block) error { return nil }

// closed implements endpoint.
func (c *Outbound) closed(m message.Close) (err error) {
	if m.Abort != nil {
		c.abort = aborts.Received(m.Abort)
	}
	if c.transport.closedBy(m.Abort) {
		c.unsent()
		c.abort, err = c.transport.closedUnsent(c.abort)
	}
	switch {
	case c.abort != nil:
	case c.Own:
		c.Result = append(c.Result, m.Result...)
	default:
		c.buf = append(c.buf[:0], m.Result...)
		c.Result = c.buf
	}
	c.done <- struct{}{}
	return err
}

// fail implements endpoint.
func (c *Outbound) fail(a *codec.Abort) {
	c.abort = a
	c.done <- struct{}{}
}

// outer implements endpoint.
func (c *Outbound) outer() *outboundParent { return outerOf(c.reserved.parent, c.open.Function) }

// Pipe implements endpoint.
func (c *Outbound) Pipe() *pipe.Pipe { return nil }

// info implements endpoint.
func (c *Outbound) info() Info {
	return Info{Pipe: c.transport.id(), Function: c.open.Function, Made: true, Priority: c.priority}
}

// queued implements endpoint.
func (c *Outbound) queued() bool { return false }

// EncodeParams encodes what v points to. The result is valid until the call has been sent.
func (c *Outbound) EncodeParams(v any) (encoded []byte, err error) {
	encoded, lent, err := c.calls().Coder.Encode(c.buf[:0], v, true)
	if !lent {
		// the buffer for the result holds the parameters until they have been sent
		c.buf = encoded
	}
	return encoded, err
}
