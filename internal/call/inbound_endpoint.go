package call

import (
	"errors"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// A call of the peer is an endpoint in the table, and the parent of calls that its handler makes.

// block implements endpoint.
func (c *Inbound) block(b message.Block) error {
	switch {
	case c.transport.pipe != nil:
		return c.transport.deliver(c.transport.pipe, b)
	case !c.work.Windowed:
		return aborts.Violation("Block for pipe %d, which is that of a unary call", b.Pipe)
	case !b.End && !overForeignWire(c.calls()):
		response{c}.answer(nil, handlerRun{c}.failed(codec.ErrBadParams.Withf("function %d %q takes no Blocks", c.Function(), c.Handler.Name)))
	}
	return nil
}

// closed implements endpoint: the caller has canceled.
func (c *Inbound) closed(m message.Close) error {
	a := codec.ErrCanceled
	if m.Abort != nil {
		a = aborts.Received(m.Abort)
	}
	if c.transport.pipe != nil {
		(*piping.End)(c.transport.pipe).CloseArrived(nil, a)
	}
	c.transport.closedBy(a)
	c.fail(a)
	return nil
}

// fail implements endpoint.
func (c *Inbound) fail(a *codec.Abort) {
	if c.extras != nil && c.extras.key != nil {
		durableCall{c}.endAwaiting()
	}
	before := c.calls().Dispatcher().Withdraw(job{c})
	if before.Waits() {
		c.Handler.Meter.ended(a)
	}
	if c.transport.pipe != nil {
		(*piping.End)(c.transport.pipe).CloseArrived(nil, a)
	}
	if before == dispatch.Arriving {
		c.ending.end(canceled) // the reader handles the rest
		return
	}
	if m := c.extras.first(); m != nil {
		if before.Waits() {
			c.calls().durable().HandOn(m)
		} else if c.calls().Carrier.Context().Err() != nil && !c.work.Nested {
			// the session has ended, and the answer is for the next one
			c.calls().durable().Orphan(m)
			return
		}
	}
	if errors.Is(a, codec.ErrExpired) {
		c.ending.end(expired)
	} else {
		c.ending.end(canceled)
	}
}

// outer implements endpoint.
func (c *Inbound) outer() *outboundParent { return nil }

// id implements inboundParent.
func (c *Inbound) id() uint64 { return c.transport.id() }

// nesting implements inboundParent.
func (c *Inbound) nesting() *nestedCalls { return &c.calls().out.nesting }

// depth implements inboundParent.
func (c *Inbound) depth() int {
	if c.parent == nil {
		return 0
	}
	return int(c.parent.depth) + 1
}

// callsBack implements inboundParent.
func (c *Inbound) callsBack() error {
	if c.Handler.Inline {
		return codec.ErrUnavailable.Withf("the handler of function %d %q runs inline, so that the answer could not be read: register it without WithInline", c.Function(), c.Handler.Name)
	}
	return nil
}

// Pipe implements endpoint.
func (c *Inbound) Pipe() *pipe.Pipe { return c.transport.pipe }

// info implements endpoint.
func (c *Inbound) info() Info {
	return Info{Pipe: c.transport.id(), Function: c.Function(), Name: c.Handler.Name, Priority: c.work.Priority}
}

// queued implements endpoint.
func (c *Inbound) queued() bool { return c.calls().Dispatcher().Waits(job{c}) }

// overForeignWire reports whether the peer uses another protocol, behind the Wire.
func overForeignWire(x *Calls) bool {
	w, _ := x.Carrier.Wire()
	_, ok := w.(wire.Foreign)
	return ok
}
