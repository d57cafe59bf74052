package call

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/internal/values"
)

// The arrival of a call of the peer, on the goroutine of the reader.

// arrive starts c, which is in the table already, so that the end of the session may end it
// meanwhile. An inline call runs here, any other one in its turn.
func (c *Inbound) arrive() {
	if err := c.weigh(); err != nil {
		c.turnBack(codec.AbortOf(err))
		return
	}
	if c.extras != nil && c.extras.key != nil {
		if refused := c.x.Dispatcher().Arrive(c.Cost(), c.work.Nested); refused != nil {
			c.Refuse(refused)
			return
		}
		c.work.Counted = true
		if !c.beginDurable() {
			return
		}
	}
	if c.Handler.Inline {
		c.runInline()
	} else if err := c.enqueue((*Inbound).turnBack); err != nil {
		c.turnBack(codec.AbortOf(err))
	}
}

// turnBack rejects c, which has just arrived. Its caller's budget is released when the rejection
// has left.
func (c *Inbound) turnBack(a *codec.Abort) {
	c.freeParams()
	if !c.work.Counted {
		if beyond := c.x.Dispatcher().Arrive(c.Cost(), c.work.Nested); beyond != nil {
			c.Refuse(beyond)
			return
		}
	}
	c.work.ByReader = true
	c.Refuse(a)
}

// enqueue queues c for its turn. On error c cannot run; refuse is as for examine.
func (c *Inbound) enqueue(refuse refusing) error {
	if c.Handler.Key != nil {
		if err := c.examine("key", refuse, c.nameKey); err != nil {
			return err
		}
	}
	c.x.arrived(c.held())
	c.x.Dispatcher().Put(c)
	return nil
}

// Application code that runs on the goroutine of the reader: inline handlers, and functions that
// are called before a call can wait. Close, called there, does not wait for the reader. If such
// code ends the goroutine, another goroutine ends the session: see package carrier.

// runInline runs c on the goroutine of the reader.
func (c *Inbound) runInline() {
	began := false
	c.x.Carrier.EnterCode()
	defer func() {
		c.x.Carrier.LeaveCode()
		if began && !c.work.ByReader && !c.work.Nested {
			c.x.Dispatcher().Return(c.Cost(), false)
		}
	}()
	if c.x.Carrier.Context().Err() != nil {
		c.x.Carrier.Settle() // the end of the session includes the end of c
	}
	ok, refused := c.x.Dispatcher().BeginInline(c)
	switch {
	case refused == dispatch.ErrDeferred:
		c.x.arrived(c.held())
		c.x.Dispatcher().Put(c) // a worker runs it; keys do not apply to it
		return
	case refused != nil:
		c.freeParams()
		c.Refuse(refused)
		return
	case !ok:
		if c.work.Counted {
			c.x.Dispatcher().Return(c.Cost(), c.work.Nested)
		}
		c.Abandon()
		return
	}
	began, c.work.ByReader = true, c.pipe == nil
	if c.x.serving.inline == nil {
		c.x.serving.inline = new(dispatch.Workspace)
	}
	c.Run(c.x.serving.inline)
}

// refusing rejects a call that has just arrived.
type refusing = func(*Inbound, *codec.Abort)

// errShutDown is the error of a call that arrives while the session ends.
var errShutDown = codec.ErrUnavailable.Withf("the session is being shut down")

// examine calls f, application code that is needed before c can wait. If f panics, examine returns
// an error. If f ends the goroutine, examine does not return, but calls refuse.
func (c *Inbound) examine(what string, refuse refusing, f func() error) (err error) {
	c.x.Carrier.EnterCode()
	returned := false
	defer func() {
		c.x.Carrier.LeaveCode()
		if returned {
			return
		}
		v := recover()
		guard.Misbehaved(c.x.Log, what, v, "function", c.Function(), "name", c.Handler.Name)
		a := codec.ErrPanicked.Withf("the %s of function %d %q %s",
			what, c.Function(), c.Handler.Name, guard.HowEnded(v))
		if err = a; v == nil {
			refuse(c, a)
		}
	}()
	if err = errShutDown; c.x.Carrier.Context().Err() == nil { // otherwise no caller waits any more
		err = f()
	}
	returned = true
	return err
}

// weigh estimates the decoded size of c's parameters as the handler's type, once for all uses of
// that type.
func (c *Inbound) weigh() error {
	h := c.Handler
	switch {
	case h.Params == nil:
		return nil
	case len(c.params) <= h.Free:
		if c.intercepted() { // interceptors may read them later: kept beside their value
			c.work.DecodedSize = dispatch.Round16(len(c.params))
		}
		return nil
	}
	return c.examine("codec", (*Inbound).turnBack, func() error {
		n, err := c.x.Weigh(c.params, h.Params)
		if err != nil {
			return values.Error(codec.BadParams, c.Function(), h.Name, "parameters", err)
		}
		c.work.DecodedSize = dispatch.Round16(n)
		return nil
	})
}

// TakeOver implements Call.
func (c *Inbound) TakeOver(params []byte) {
	c.countOut()
	c.params = params
	if !c.work.Nested {
		c.work.Size, c.extras.returned = uint32(len(params)), uint32(len(params))
	}
	if c.Handler.Key != nil {
		// the key function may block, or end the goroutine, which belongs to another call; ends by
		// itself
		go c.runInPlace()
		return
	}
	c.runInPlace()
}

// runInPlace runs c in place of another call, which did not run.
func (c *Inbound) runInPlace() {
	if err := c.enqueue((*Inbound).turnBackNext); err != nil {
		c.turnBackNext(codec.AbortOf(err))
	}
}

// turnBackNext rejects c, which was about to run in place of another call.
func (c *Inbound) turnBackNext(a *codec.Abort) {
	c.x.Dispatcher().Return(c.Cost(), c.work.Nested)
	c.Refuse(a)
}

// nameKey computes the key of c for a function with keys. An error rejects the call.
func (c *Inbound) nameKey() error {
	k := c.Handler.Key
	held, err := c.weighForKey()
	if err != nil {
		return err
	}
	c.x.Dispatcher().Hold(held)
	defer c.x.Dispatcher().Hold(-held)
	key, value, err := k.KeyOf(c.x.Values, c.params)
	if err != nil {
		return values.Error(codec.BadParams, c.Function(), c.Handler.Name, "parameters", err)
	}
	if c.withinSame(&key) {
		return nil
	}
	t := dispatch.NewTurn(key, c)
	if c.keepsForKey() {
		t.Value, t.Held = value, uint32(buffer.Allocated(int(k.Params.Size())))
		if c.heldParams() == 0 { // the parameters are a part of c
			t.Held += uint32(c.work.DecodedSize.Bytes())
		}
		c.freeParams()
	}
	c.makeRare().turn = t
	return nil
}

// keepsForKey reports whether the value decoded for the key is kept for the handler of c, so that
// it is not decoded again. It has to be of the same type, and hold no more than the parameters that
// it replaces, which must have no other use.
func (c *Inbound) keepsForKey() bool {
	k := c.Handler.Key
	return k.Params != nil && k.Params == c.Handler.Params && c.x.Lender == nil && !c.intercepted() && (c.extras == nil || c.extras.key == nil) &&
		(len(c.params) <= k.Free || c.work.DecodedSize.Bytes() <= max(c.heldParams(), len(unaryCall{}.small)))
}

// weighForKey returns the decoded size of c's parameters for their key. For the handler's type it
// is known already.
func (c *Inbound) weighForKey() (n int, err error) {
	k := c.Handler.Key
	switch {
	case k.Params == nil || len(c.params) <= k.Free:
		return 0, nil
	case k.Params == c.Handler.Params:
		return c.work.DecodedSize.Bytes(), nil
	}
	if n, err = c.x.Weigh(c.params, k.Params); err != nil {
		err = values.Error(codec.BadParams, c.Function(), c.Handler.Name, "parameters", err)
	}
	return n, err
}
