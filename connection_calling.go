package asterisque

import (
	"container/list"
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/internal/idempotency"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/pipe"
)

// Call is [Session.Call] on the present session.
func (c *Connection) Call(ctx context.Context, function uint16, params []byte, opts ...CallOption) ([]byte, error) {
	return CallOn(ctx, c, function, params, opts...)
}

// Open is [Session.Open] on the present session.
func (c *Connection) Open(life context.Context, function uint16, params []byte, opts ...CallOption) (*pipe.Pipe, error) {
	return OpenOn(life, c, function, params, opts...)
}

// session returns the session for a call.
func (c *Connection) session(ctx context.Context, m *interceptedOutbound) (*Session, *Abort) {
	c.mu.Lock()
	s, state := c.current, c.state
	c.mu.Unlock()
	switch {
	case takesCalls(s) && (!s.Away() || state == Connected && !m.cfg.FailFast):
		// a session that has just resumed is up, even if state is behind
		return s, nil
	case c.ctx.Err() != nil:
		return nil, aborts.NeverSent(c.Err())
	case m.cfg.FailFast:
		return nil, c.unavailable()
	}
	if !m.expires.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, m.expires)
		defer cancel()
	}
	return c.wait(ctx)
}

// Invoke implements [Caller]: it makes call on the present session, for which it waits. If the
// session ends meanwhile, and call certainly did not run, Invoke makes it on the next one. A
// durable call ([WithDurable]) is made on one session after the other until it is answered.
func (c *Connection) Invoke(ctx context.Context, call *Call) error {
	m, a := makingOf(call)
	switch {
	case a != nil:
		return a
	case c == nil:
		return errNoConnection
	}
	if m.cfg.Durable && !m.call.blocks {
		return c.durably(ctx, m)
	}
	for {
		s, a := c.session(ctx, m)
		if a != nil {
			return a
		}
		ran := m.call.mayHaveRun()
		err := s.Invoke(ctx, call)
		if err == nil || m.call.mayHaveRun() > ran || !overtaken(s, err) || c.ctx.Err() != nil {
			return err
		}
	}
}

// Ready reports whether there is a session for new calls with a connected Wire, so that a call is
// sent without waiting for one.
func (c *Connection) Ready() bool {
	_, ok := c.Choose()
	return ok
}

// Choose implements [Chooser].
func (c *Connection) Choose() (Choice, bool) {
	if c == nil {
		return Choice{}, false
	}
	s := c.chosen.Load()
	return Choice{Session: s}, takesCalls(s) && !s.Away()
}

// Chosen implements [Chooser].
func (c *Connection) Chosen(by Choice, err error) (again Caller) {
	if c != nil && err != nil && overtaken(by.Session, err) && c.ctx.Err() == nil {
		return c
	}
	return nil
}

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
	again := wait.Backoff{First: refusedFirst, Most: refusedMost}
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
		last = s.Invoke(ctx, &m.call)
		if !c.repeats(ctx, s, last) && !(m.isOpen(last) && c.pause(ctx, again.Next())) {
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
	if m.call.mayHaveRun() == 0 {
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
	return m.call.mayHaveRun() > 0 && worthRetrying(err)
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

// durableCalls are the running durable calls of a connection, in order. On every session they are
// sent in that order: each waits until the one before it has been sent. Calls that a draining peer
// has accepted stay on their session.
type durableCalls struct {
	most int // fixed

	mu    sync.Mutex
	calls list.List // guarded by mu, like its elements; of *durableCall
	on    *Session  // the present session; nil before the first
}

// durableCall is one durable call.
type durableCall struct {
	sent *Session // the session on which the call was sent last
	// closed when the call before this one has been sent, or the session changes; nil without a
	// waiter
	turn chan struct{}
}

func (d *durableCalls) init(most int) {
	if most <= 0 {
		most = 1024
	}
	d.most = most
}

// moveTo makes all calls be sent again on another session, in order.
func (d *durableCalls) moveTo(s *Session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.on = s
	for e := d.calls.Front(); e != nil; e = e.Next() {
		e.Value.(*durableCall).wake()
	}
}

// stays reports whether the call waits for its answer on a session that takes no new calls: then it
// does not delay other calls.
func (c *durableCall) stays() bool {
	return c.sent != nil && c.sent.calls.PeerDrains() && c.sent.calls.Context().Err() == nil
}

// before returns the call that has to be sent before e, or nil.
func before(e *list.Element) *list.Element {
	for e = e.Prev(); e != nil && e.Value.(*durableCall).stays(); {
		e = e.Prev()
	}
	return e
}

// wakeAfter wakes the calls that may have waited for e alone.
func wakeAfter(e *list.Element) {
	for e = e.Next(); e != nil; e = e.Next() {
		c := e.Value.(*durableCall)
		if c.wake(); !c.stays() {
			return
		}
	}
}

func (c *durableCall) wake() {
	if c.turn != nil {
		close(c.turn)
		c.turn = nil
	}
}

// add adds a call at the end. It returns nil if there are too many.
func (d *durableCalls) add() *list.Element {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls.Len() >= d.most {
		return nil
	}
	return d.calls.PushBack(new(durableCall))
}

// remove removes a call that has ended.
func (d *durableCalls) remove(e *list.Element) {
	d.mu.Lock()
	defer d.mu.Unlock()
	wakeAfter(e)
	d.calls.Remove(e)
}

// wait waits until the call before e has been sent on s. It returns false if the session changes
// meanwhile. The error is that of ctx.
func (d *durableCalls) wait(ctx context.Context, e *list.Element, s *Session) (ok bool, err error) {
	for {
		d.mu.Lock()
		first, present := before(e), d.on == s
		if !present || first == nil || first.Value.(*durableCall).sent == s {
			d.mu.Unlock()
			return present, nil
		}
		turn := make(chan struct{})
		e.Value.(*durableCall).turn = turn
		d.mu.Unlock()
		select {
		case <-turn:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// sent records that e has been sent on s, or on no session if s is nil.
func (d *durableCalls) sent(e *list.Element, s *Session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e.Value.(*durableCall).sent = s
	wakeAfter(e)
}
