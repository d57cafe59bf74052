package asterisque

import (
	"context"

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
	s.announceEndWhen(carrier.WithNext) // which is what is refused, or the goodbye
	s.refuseWaiting()
	s.fail(codec.ErrSessionClosed.Withf("closed by this side"))
	s.carrier.Wait()
	return nil
}

// Shutdown ends the session in good order: new calls of either side are refused with
// ErrUnavailable, running ones may finish, and then it closes. If ctx ends first, the session is
// closed as by Close, and the error is that of ctx.
//
// A call of the peer that had not arrived before, or that is refused, certainly did not run, and
// [Repeatable] says so there. Of one that had arrived, and whose answer or refusal the peer does
// not get, it says that it may have run, even if it was still waiting here when ctx ended.
//
// With the context of a handler that the session runs, it cannot wait for the end of that. Then it
// returns nil at once, and the session goes on by itself to the end of its running calls. With
// another context, called by a handler, it waits for that handler, until the context ends.
func (s *Session) Shutdown(ctx context.Context) error {
	s.announceEnd()
	if calledBy(ctx) == s {
		go s.Shutdown(context.Background()) // ends with the running calls
		return nil
	}
	err := s.drain(ctx)
	s.Close()
	return err
}

// calledBy returns the session of the running call whose handler has ctx, or nil.
func calledBy(ctx context.Context) *Session {
	if ctx.Err() != nil {
		return nil
	}
	return SessionOf(ctx)
}

// announceEnd tells the peer which of its calls will still run: those that have arrived. What is
// refused afterwards reaches the peer after that, so that it knows why.
func (s *Session) announceEnd() { s.announceEndWhen(carrier.Now) }

func (s *Session) announceEndWhen(when carrier.When) {
	if !s.draining.Load() {
		// also if somebody else is about to: what the caller refuses has to come after it
		s.carrier.Control(s.table.drainHere(), when)
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
// ended.
func (s *Session) drain(ctx context.Context) error {
	for _, wait := range []func() <-chan struct{}{s.carrier.Flush, s.table.drained, s.carrier.Flush} {
		select {
		case <-wait():
		case <-s.ctx.Done():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Flush waits until everything sent before has been given to the Wire; that the peer has it, it
// does not say. The error is that of ctx, as an *[Abort], or why the session ended.
func (s *Session) Flush(ctx context.Context) error {
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
