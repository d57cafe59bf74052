package asterisque

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/limits"
)

// Close ends the session at once: running calls of both sides end with ErrSessionClosed, and so do
// all that wait, except for calls of the peer that have not begun, which are refused with
// ErrUnavailable, as far as the Wire takes that without waiting. What has been given to the Wire,
// or is about to be, still arrives if the peer reads within a second. Close returns when the Wire
// is closed and the session's own goroutines have ended; handlers that ignore their context may run
// on. Repeated calls wait as well.
//
// Handlers and callbacks may call it. While the goroutine that reads the session runs code of the
// application, an inline handler or the function of [WithKey], Close does not wait for that.
func (s *Session) Close() error {
	if s == nil {
		return errNoSession
	}
	s.closeFor(codec.ErrSessionClosed.Withf("closed by the application"))
	return nil
}

// closeFor is Close because of a.
func (s *Session) closeFor(a *Abort) {
	s.announceEndWhen(carrier.WithNext) // which is what is refused, or the goodbye
	s.refuseWaiting()
	s.fail(a)
	s.carrier.Wait()
}

// Shutdown ends the session in good order: new calls of either side are refused with
// ErrUnavailable, running ones may finish, and then it closes. Handlers that would run for ever
// learn of it by [Draining]. If ctx ends first, the session is closed as by Close, and the error is
// that of ctx.
//
// Whatever ctx says, the time of [Timeouts].Drain is the most that running calls get, 30 seconds by
// default. Those that still run are cut then, of both sides: they end with ErrUnavailable, which
// says so, on both sides, and are not [Repeatable], as they may have run. The contexts of their
// handlers end, and [Session.Err] tells a handler why ([SessionOf]); those of durable calls go on
// without the session, as after any end of it (see [WithDurable]). The session ends with the same
// error, and so does Shutdown.
//
// A call of the peer that had not arrived before, or that is refused, certainly did not run, and
// [Repeatable] says so there. Of one that had arrived, and whose answer or refusal the peer does
// not get, it says that it may have run, even if it was still waiting here when ctx ended.
//
// With the context of a handler that the session runs, it cannot wait for the end of that. Then it
// returns nil at once, and the session goes on by itself to the end of its running calls, or of the
// time of Timeouts.Drain. With another context, called by a handler, it waits for that handler,
// until the context ends, or that time.
//
// New calls on a [Connection] are refused as well, until the session has ended: with
// [Session.Retire] the Connection takes another one for them.
func (s *Session) Shutdown(ctx context.Context) error {
	if s == nil {
		return errNoSession
	}
	s.announceEnd()
	if calledBy(ctx) == s {
		go s.Shutdown(context.Background()) // ends with the running calls, or with their time
		return nil
	}
	err := s.drain(ctx)
	if cut, ok := err.(*Abort); ok {
		s.closeFor(cut)
		return cut
	}
	s.Close()
	return err
}

// Retire lets this side make no new call on the session, as if the peer had announced to shut it
// down: such a call is refused with ErrUnavailable, and certainly did not run. A [Connection] that
// has the session takes another one for new calls, and ends this one when those that run are over.
// It is for who knows that the Wire will not last. Retire does not wait; repeated calls do nothing.
func (s *Session) Retire() {
	if s != nil && s.outgoing.drain() {
		s.holder.sessionChanged()
	}
}

// calledBy returns the session of the running call whose handler has ctx, or nil.
func calledBy(ctx context.Context) *Session {
	if ctx.Err() != nil {
		return nil
	}
	return SessionOf(ctx)
}

// announceEnd tells the peer which of its calls will still run: those that have arrived. Those of
// which only some parts have come are refused. What is refused reaches the peer after the Drain, so
// that it knows why.
func (s *Session) announceEnd() { s.announceEndWhen(carrier.Now) }

func (s *Session) announceEndWhen(when carrier.When) {
	if !s.draining.Load() {
		// also if somebody else is about to: what the caller refuses has to come after it
		d, begun := s.table.drainHere()
		s.carrier.Control(d, when)
		for id, p := range begun {
			s.turnAwayUnfinished(id, p, errShutDown)
		}
		s.draining.Store(true)
	}
}

// refuseWaiting refuses the calls of the peer that have not begun, as far as the outbound soft
// limit allows. What the Wire does not take at once is lost with the session.
func (s *Session) refuseWaiting() {
	_, endpoints := s.table.infos()
	for _, e := range endpoints {
		if s.outbound.State() >= limits.Soft || s.ctx.Err() != nil {
			return
		}
		if c, ok := e.(*served); ok && s.calls.waits(c) && s.calls.withdraw(c).waits() {
			c.refuse(errShutDown)
		}
	}
}

// drain waits until no call runs and all answers have been given to the Wire, or the session has
// ended. The error is that of ctx, or an *Abort when the time for it is over.
func (s *Session) drain(ctx context.Context) error {
	var over <-chan time.Time // never, without a limit
	limit := s.cfg.drain
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		over = t.C
	}
	// a call that found the session not draining yet may enter the outbox at any later time
	lastOpens := func() <-chan struct{} { s.carrier.EndOpens(); return s.carrier.Flush() }
	for _, wait := range []func() <-chan struct{}{s.carrier.Flush, lastOpens, s.table.drained, s.carrier.Flush} {
		select {
		case <-wait():
		case <-s.ctx.Done():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			return errCut(limit)
		}
	}
	return nil
}

// errCut returns why a session ends when its calls have had so much time to finish. The peer is
// told the same.
func errCut(limit time.Duration) *Abort {
	return codec.ErrUnavailable.Withf("the session was cut after %v of drain, with calls that still ran: "+
		"see Timeouts.Drain of the side that shut it down", limit)
}

// Flush waits until everything sent before has been given to the Wire; that the peer has it, it
// does not say. The error is that of ctx, as an *[Abort], or why the session ended.
func (s *Session) Flush(ctx context.Context) error {
	if s == nil {
		return errNoSession
	}
	if s.ctx.Err() != nil {
		return s.cause() // what waited at the end was dropped
	}
	select {
	case <-s.carrier.Flush():
		return nil
	case <-s.ctx.Done():
		return s.cause()
	case <-ctx.Done():
		return contextError(ctx)
	}
}

// drained returns the error of a call that the Drain of the peer has refused, when the session ends
// because of a before the peer's answer has come.
func drained(a *Abort) *Abort {
	return &Abort{Code: codec.Unavailable, Message: "the peer shut the session down before the call arrived", Remote: true, Ran: codec.Refused, Cause: a}
}
