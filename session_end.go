package asterisque

import (
	"context"
	"fmt"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/limits"
)

// Close ends the session at once. Running calls of both sides, and all waits, end with
// ErrSessionClosed. Calls of the peer that have not begun are rejected with ErrUnavailable, as far
// as the Wire takes the rejections without blocking. Messages that have been given to the Wire, or
// are about to be, still arrive if the peer reads within a second. Close returns when the Wire is
// closed and the session's own goroutines have ended; handlers that ignore their context may still
// run. Repeated calls wait as well.
//
// Handlers and callbacks may call Close. While the goroutine that reads the session runs code of
// the application (an inline handler, or the function of [WithKey]), Close does not wait for it.
func (s *Session) Close() error {
	if s == nil {
		return errNoSession
	}
	s.closeFor(codec.ErrSessionClosed.Withf("closed by the application"))
	return nil
}

// closeFor is Close with the cause a.
func (s *Session) closeFor(a *Abort) {
	s.calls.AnnounceEnd(carrier.WithNext) // next are the rejections, or the SessionClose
	s.calls.RefuseWaiting()
	s.calls.Fail(a)
	s.calls.Carrier.Wait()
}

// Shutdown ends the session gracefully: new calls of either side are rejected with ErrUnavailable,
// running ones may finish, and then the session closes. Handlers that would run forever notice it
// by [Draining]. If ctx ends first, the session is closed as by Close, and the error is that of
// ctx.
//
// Running calls have at most the time of [Timeouts].Drain, 30 seconds by default, even if ctx
// allows more. Calls of both sides that still run then are cut: on both sides they end with an
// ErrUnavailable that names the cut, and are not [Repeatable], as they may have run. The contexts
// of their handlers end, and [Session.Err] of [SessionOf] has the reason. Durable calls continue
// without the session, as after any end of it (see [WithDurable]). The session ends with the same
// error, which Shutdown returns.
//
// A call of the peer that has not arrived, or is rejected, certainly did not run, and is
// [Repeatable] at the peer. A call that has arrived, without its answer or rejection reaching the
// peer, may have run as far as the peer knows, even if it was still waiting here when ctx ended.
//
// Shutdown cannot wait for the handler that calls it. With the context of a handler of the session
// it returns nil at once, and the session ends after its running calls, or after Timeouts.Drain. If
// a handler calls it with another context, Shutdown waits for that handler, until that context
// ends, or that time.
//
// New calls on a [Connection] are rejected as well, until the session has ended: with
// [Session.Retire] the Connection opens another session for them.
func (s *Session) Shutdown(ctx context.Context) error {
	if s == nil {
		return errNoSession
	}
	s.calls.AnnounceEnd(carrier.Now)
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

// Retire ends the use of the session for new calls of this side, as if the peer had announced a
// shutdown: a new call is rejected with ErrUnavailable, and certainly did not run. A [Connection]
// that has the session opens another one for new calls, and ends this one after its running calls.
// Retire is for applications that know that the Wire will be lost. It does not block; repeated
// calls have no effect.
func (s *Session) Retire() {
	if s != nil && s.calls.Retire() {
		s.holder.sessionChanged()
	}
}

// calledBy returns the session of the running call with the handler's context ctx, or nil.
func calledBy(ctx context.Context) *Session {
	if ctx.Err() != nil {
		return nil
	}
	return SessionOf(ctx)
}

// drain waits until no call runs and all answers have been given to the Wire, or the session has
// ended. The error is that of ctx, or an *Abort after Timeouts.Drain.
func (s *Session) drain(ctx context.Context) error {
	over := make(chan struct{}) // never closed without a limit
	limit := s.cfg.drain
	if limit > 0 {
		defer wait.AfterFunc(limit, func() { close(over) }).Stop()
	}
	// a call that found the session not draining yet may enter the outbox at any later time
	lastOpens := func() <-chan struct{} { s.calls.Carrier.EndOpens(); return s.calls.Carrier.Flush() }
	for _, next := range []func() <-chan struct{}{s.calls.Carrier.Flush, lastOpens, s.calls.Drained, s.calls.Carrier.Flush} {
		select {
		case <-next():
		case <-s.calls.Context().Done():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			return errCut(limit)
		}
	}
	return nil
}

// errCut returns the error of a session after its calls have exceeded limit at a shutdown. The peer
// receives the same error.
func errCut(limit time.Duration) *Abort {
	return codec.ErrUnavailable.Withf("the session was cut after %v of drain, with calls that still ran: "+
		"see Timeouts.Drain of the side that shut it down", limit)
}

// Flush waits until all earlier messages have been given to the Wire; the peer may not have
// received them. The error is that of ctx, as an *[Abort], or the cause of the session's end.
func (s *Session) Flush(ctx context.Context) error {
	if s == nil {
		return errNoSession
	}
	if s.calls.Context().Err() != nil {
		return s.calls.Cause() // waiting messages were dropped at the end
	}
	select {
	case <-s.calls.Carrier.Flush():
		return nil
	case <-s.calls.Context().Done():
		return s.calls.Cause()
	case <-ctx.Done():
		return aborts.OfContext(ctx)
	}
}

// SetLimits replaces the limits of both directions. Senders that are beyond a new outbound soft
// limit wait as if they had just reached it. Existing grants to the peer remain, and are read. A
// new inbound soft limit bounds the elastic room for further grants: the minimums of the other
// classes are announced when the session begins (see docs/limits.md). Without windows, it is the
// mark at which reading stops. The error names the invalid mark; on error the limits do not change.
func (s *Session) SetLimits(inbound, outbound limits.Limits) error {
	if s == nil {
		return errNoSession
	}
	in, err := inbound.Check()
	if err != nil {
		return fmt.Errorf("asterisque: inbound: %w", err)
	}
	out, err := outbound.Check()
	if err != nil {
		return fmt.Errorf("asterisque: outbound: %w", err)
	}
	s.calls.SetLimits(in, out)
	return nil
}

// StopReading stops reading the Wire after the frame that is being read, until StartReading. The
// transport then holds up the peer, and calls of either side wait. A paused session does not count
// as stalled. One frame in each ping interval still passes, unless the inbound hard limit is near:
// otherwise a lost peer would not be noticed behind its unread messages.
func (s *Session) StopReading() {
	if s != nil {
		s.calls.Carrier.StopReading()
	}
}

// StartReading resumes reading after StopReading.
func (s *Session) StartReading() {
	if s != nil {
		s.calls.Carrier.StartReading()
	}
}

// Limits returns the limits in force for a direction.
func (s *Session) Limits(d Direction) limits.Limits {
	switch {
	case s == nil:
		return limits.Limits{}
	}
	inbound, outbound := s.calls.Limits()
	if d == Inbound {
		return inbound
	}
	return outbound
}
