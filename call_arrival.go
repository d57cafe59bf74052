package asterisque

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/guard"
)

// What becomes of a call of the peer on the goroutine of the reader.

// arrive lets c run: here if it is inline, and else as soon as it is its turn. It is in the table
// already, so that the end of the session may end it meanwhile.
func (c *served) arrive() {
	if err := c.weigh(); err != nil {
		c.turnBack(codec.AbortOf(err))
		return
	}
	if c.rare != nil && c.rare.key != nil {
		if refused := c.x.serving.calls.arrive(c.cost(), c.work.nested); refused != nil {
			c.refuse(refused)
			return
		}
		c.work.counted = true
		if !c.beginDurable() {
			return
		}
	}
	if c.handler.inline {
		c.runInline()
	} else if err := c.enqueue((*served).turnBack); err != nil {
		c.turnBack(codec.AbortOf(err))
	}
}

// turnBack refuses c, which has only just arrived. Its caller gets its room back when the refusal
// has left.
func (c *served) turnBack(a *Abort) {
	c.freeParams()
	if !c.work.counted {
		if beyond := c.x.serving.calls.arrive(c.cost(), c.work.nested); beyond != nil {
			c.refuse(beyond)
			return
		}
	}
	c.work.byReader = true
	c.refuse(a)
}

// enqueue lets c run as soon as it is its turn. An error is why it cannot; refuse is as for
// examine.
func (c *served) enqueue(refuse refusing) error {
	if c.handler.key != nil {
		if err := c.examine("key", refuse, c.nameKey); err != nil {
			return err
		}
	}
	c.x.arrived(c.held())
	c.x.serving.calls.put(c)
	return nil
}

// Code of the application that runs on the goroutine of the reader: inline handlers, and what is
// asked about a call before it can wait. Close, called there, does not wait for the reader; and if
// such code ends the goroutine, another one ends the session: see package carrier.

// runInline runs c on the goroutine of the reader.
func (c *served) runInline() {
	began := false
	c.x.carrier.EnterCode()
	defer func() {
		c.x.carrier.LeaveCode()
		if began && !c.work.byReader && !c.work.nested {
			c.x.serving.calls.giveBack(c.cost(), false)
		}
	}()
	if c.x.ctx.Err() != nil {
		c.x.carrier.Settle() // whoever ended the session has to have ended c
	}
	ok, refused := c.x.serving.calls.beginInline(c)
	switch {
	case refused == errCrowded:
		c.x.arrived(c.held())
		c.x.serving.calls.put(c) // a worker runs it; keys have no meaning for it
		return
	case refused != nil:
		c.freeParams()
		c.refuse(refused)
		return
	case !ok:
		if c.work.counted {
			c.x.serving.calls.giveBack(c.cost(), c.work.nested)
		}
		c.abandon()
		return
	}
	began, c.work.byReader = true, c.pipe == nil
	if c.x.serving.inline == nil {
		c.x.serving.inline = new(workspace)
	}
	c.run(c.x.serving.inline)
}

// refusing refuses a call that has only just arrived.
type refusing = func(*served, *Abort)

// errShutDown is why a call is refused that arrives while the session ends.
var errShutDown = codec.ErrUnavailable.Withf("the session is being shut down")

// examine calls f, which asks code of the application about c before c can wait. If that panics,
// the error says so. If it ends the goroutine, refuse is called, because examine does not return.
func (c *served) examine(what string, refuse refusing, f func() error) (err error) {
	c.x.carrier.EnterCode()
	returned := false
	defer func() {
		c.x.carrier.LeaveCode()
		if returned {
			return
		}
		v := recover()
		guard.Misbehaved(c.x.log, what, v, "function", c.function(), "name", c.handler.name)
		a := codec.ErrPanicked.Withf("the %s of function %d %q %s",
			what, c.function(), c.handler.name, guard.HowEnded(v))
		if err = a; v == nil {
			refuse(c, a)
		}
	}()
	if err = errShutDown; c.x.ctx.Err() == nil { // otherwise nobody waits for it any more
		err = f()
	}
	returned = true
	return err
}

// weigh finds out what the parameters of c become, once for all who decode them as what the handler
// takes.
func (c *served) weigh() error {
	h := c.handler
	switch {
	case h.params == nil:
		return nil
	case len(c.params) <= h.free:
		if c.intercepted() { // who may look at them later, so that they stay beside their value
			c.work.becomes = roughly(len(c.params))
		}
		return nil
	}
	return c.examine("codec", (*served).turnBack, func() error {
		n, err := c.x.weigh(c.params, h.params)
		if err != nil {
			return codecError(codec.BadParams, c.function(), h.name, "parameters", err)
		}
		c.work.becomes = roughly(n)
		return nil
	})
}

// takeOver implements durableJob.
func (c *served) takeOver(params []byte) {
	c.countOut()
	c.params = params
	if !c.work.nested {
		c.work.size, c.rare.returned = uint32(len(params)), uint32(len(params))
	}
	if c.handler.key != nil {
		// as its key may block, or end the goroutine, which is that of somebody else; it ends by
		// itself
		go c.runInPlace()
		return
	}
	c.runInPlace()
}

// runInPlace lets c run in the place of another one, which did not.
func (c *served) runInPlace() {
	if err := c.enqueue((*served).turnBackNext); err != nil {
		c.turnBackNext(codec.AbortOf(err))
	}
}

// turnBackNext refuses c, which was about to run in the place of another one.
func (c *served) turnBackNext(a *Abort) {
	c.x.serving.calls.giveBack(c.cost(), c.work.nested)
	c.refuse(a)
}
