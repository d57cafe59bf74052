package asterisque

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/guard"
)

// Code of the application that runs on the goroutine of the reader: inline handlers, and what is
// asked about a call before it can wait. Close, called there, does not wait for the reader; and if
// such code ends the goroutine, another one ends the session: see Session.runTo.

// runInline runs c on the goroutine of the reader.
func (s *Session) runInline(c *served) {
	began := false
	s.carrier.EnterCode()
	defer func() {
		s.carrier.LeaveCode()
		if began && !c.work.byReader && !c.work.nested {
			s.calls.giveBack(c.cost(), false)
		}
	}()
	if s.ctx.Err() != nil {
		s.carrier.Settle() // whoever ended the session has to have ended c
	}
	ok, refused := s.calls.beginInline(c)
	switch {
	case refused == errCrowded:
		s.arrived(c.held())
		s.calls.put(c) // a worker runs it; keys have no meaning for it
		return
	case refused != nil:
		c.freeParams()
		c.refuse(refused)
		return
	case !ok:
		if c.work.counted {
			s.calls.giveBack(c.cost(), c.work.nested)
		}
		if m := c.memory(); m != nil {
			s.shared.once.refuse(m)
		}
		return
	}
	began, c.work.byReader = true, c.pipe == nil
	if s.inline == nil {
		s.inline = new(workspace)
	}
	c.run(s.inline)
}

// refusing refuses a call that has only just arrived.
type refusing = func(*Session, *served, *Abort)

// examine calls f, which asks code of the application about c before c can wait. If that panics,
// the error says so. If it ends the goroutine, refuse is called, because examine does not return.
func (c *served) examine(what string, refuse refusing, f func() error) (err error) {
	c.s.carrier.EnterCode()
	returned := false
	defer func() {
		c.s.carrier.LeaveCode()
		if returned {
			return
		}
		v := recover()
		guard.Misbehaved(c.s.cfg.log, what, v, "function", c.handler.number, "name", c.handler.name)
		a := codec.ErrPanicked.Withf("the %s of function %d %q %s",
			what, c.handler.number, c.handler.name, guard.HowEnded(v))
		if err = a; v == nil {
			refuse(c.s.Session, c, a)
		}
	}()
	if err = errShutDown; c.s.ctx.Err() == nil { // otherwise nobody waits for it any more
		err = f()
	}
	returned = true
	return err
}
