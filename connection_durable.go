package asterisque

import (
	"container/list"
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/internal/idempotency"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// overtaken reports whether a call failed with err on s only because s has ended meanwhile, or
// because of a Drain of the peer: the call certainly did not run, and the next session may take it.
func overtaken(s *Session, err error) bool {
	if takesCalls(s) || !Repeatable(err) {
		return false
	}
	return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrSessionClosed) || s.calls.Context().Err() != nil && codec.AbortOf(err).Ran == codec.NeverSent
}

// durably makes a call on one session after the other until it is answered.
func (c *Connection) durably(ctx context.Context, m *interceptedOutbound) error {
	e := c.durable.add()
	if e == nil {
		return aborts.NeverSent(codec.ErrOverloaded.Withf("%d durable calls are under way, and no more are allowed: see ReconnectConfig.Durable", c.durable.most))
	}
	defer c.durable.remove(e)
	cfg := m.own()
	defer func() { cfg.Sent = nil }()
	if cfg.Key == nil {
		defer func() { cfg.Key = nil }()
		cfg.Key = make([]byte, idempotency.KeySize)
		rand.Read(cfg.Key) // never fails
	}
	again := backoff{first: refusedFirst, most: refusedMost}
	var last error
	for {
		s, a := c.turn(ctx, e)
		if a != nil {
			if last != nil {
				a.Ran = codec.MaybeRan // on an earlier session
			}
			return a
		}
		cfg.Sent = func() { c.durable.sent(e, s) }
		last = s.Invoke(ctx, &m.Call)
		if !c.repeats(ctx, s, last) && !(m.isOpen(last) && c.pause(ctx, again.next())) {
			return m.endedWith(ctx, s, last)
		}
		c.durable.sent(e, nil)
	}
}

// endedWith returns the error of a durable call after its last attempt has failed with err on s.
// The end of s is not an outcome of such a call: it ends with ctx.
func (m *interceptedOutbound) endedWith(ctx context.Context, s *Session, err error) error {
	if err == nil || ctx.Err() == nil || s.Err() == nil {
		return err
	}
	if a := codec.AbortOf(err); a.Remote && a.Code != codec.AbortOf(s.Err()).Code {
		return err // an answer
	}
	a := call.WaitedFor(ctx, "the answer to a durable call, after the end of its session")
	if m.mayHaveRun() == 0 {
		a = aborts.NeverSent(a)
	}
	return a
}

// turn returns the session for a durable call, when the calls before it have been sent.
func (c *Connection) turn(ctx context.Context, e *list.Element) (*Session, *Abort) {
	for {
		s, a := c.wait(ctx)
		if a != nil {
			return nil, a
		}
		switch turn, err := c.durable.wait(ctx, e, s); {
		case err != nil:
			return nil, aborts.NeverSent(aborts.OfContext(ctx))
		case turn:
			return s, nil
		}
	}
}

const (
	// A durable call that may have run is repeated after these waits when it is rejected.
	refusedFirst = 100 * time.Millisecond
	refusedMost  = 2 * time.Second
)

// isOpen reports whether a call that was rejected with err, a temporary error, may have run before,
// so that only a repetition returns its outcome.
func (m *interceptedOutbound) isOpen(err error) bool {
	return m.mayHaveRun() > 0 && worthRetrying(err)
}

// pause waits for d, and reports whether neither ctx nor the connection has ended.
func (c *Connection) pause(ctx context.Context, d time.Duration) bool {
	return wait.Sleep(ctx, d) && c.ctx.Err() == nil
}

// repeats reports whether a call that failed with err is to be made on another session. If s is
// ending, it first waits until s has ended or takes no new calls.
func (c *Connection) repeats(ctx context.Context, s *Session, err error) bool {
	if err == nil || ctx.Err() != nil || c.ctx.Err() != nil {
		return false
	}
	drains := s.calls.Drains() || s.calls.PeerDrains()
	if s.calls.Context().Err() == nil && !(drains && Repeatable(err) && errors.Is(err, ErrUnavailable)) {
		return false // an answer
	}
	if overtaken(s, err) {
		return true
	}
	select {
	case <-s.Done():
		return true
	case <-ctx.Done():
	case <-c.ctx.Done():
	}
	return false
}
