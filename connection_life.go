package asterisque

import (
	"context"
	"fmt"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/callback"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/internal/handshake"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// newConnection returns a connection without a session. The caller runs it.
func newConnection(n *Node, life context.Context, url string, how ReconnectConfig) *Connection {
	c := &Connection{node: n, url: url, how: how, over: make(chan struct{}), changed: make(chan struct{})}
	c.dials = callback.NewQuery(n.cfg.log, "ReconnectConfig.Dial", "ReconnectConfig.Dial", mostDials)
	c.ctx, c.end = context.WithCancelCause(life)
	c.outage = NotConnectedError{Peer: c.name(), Since: time.Now()}
	c.durable.init(how.Durable)
	if c.how.First == 0 {
		c.how.First = time.Second
	}
	return c
}

// run maintains a session until the connection ends.
func (c *Connection) run() {
	returned := false
	defer func() {
		if !returned { // a Wire of the application has ended the goroutine
			go c.conclude(c.Session()) // ends as this one would have
		}
	}()
	s := c.keepSession()
	returned = true
	c.conclude(s)
}

// conclude ends all sessions of the connection, s included, unless that is nil.
func (c *Connection) conclude(s *Session) {
	defer close(c.over)
	defer c.node.connections.Remove(c)
	c.end(codec.ErrPanicked.Withf("the application has ended the goroutine of the connection"))
	if s != nil {
		s.calls.Fail(aborts.Of(c.Err()))
		s.calls.Carrier.Wait()
	}
	c.awaitRetired(context.Background(), 0)
	c.set(nil, connectionOver, c.Err())
}

// keepSession maintains a session until the connection ends. It returns the last one, or nil if
// that has ended.
func (c *Connection) keepSession() (s *Session) {
	var until time.Time // time until which s can be resumed; zero without s
	back := wait.Backoff{First: c.how.First, Most: c.how.Most}
	for c.ctx.Err() == nil {
		next, err := c.connect(s, until, &back)
		if err != nil {
			c.end(err)
			break
		}
		s = next
		begin := time.Now()
		c.set(s, sessionUp, nil)
		err = c.watch(s)
		steady := time.Since(begin) >= leastSteady || s.calls.PeerDrains() && s.calls.Concluded()
		if s, until = c.resumable(s); s == nil && c.finishing.Load() {
			c.awaitRetired(c.ctx, 0)
			c.end(codec.ErrSessionClosed.Withf("the application has shut the connection down"))
			break
		}
		c.set(s, sessionDown, err)
		c.awaitRetired(c.ctx, mostRetired-1)
		if steady {
			c.rest(wait.CutBefore(back.Soon(), until))
		} else {
			c.rest(back.NextBefore(until))
		}
	}
	return s
}

// leastSteady is the minimum duration of a connection after which its loss begins a new series of
// attempts, unless the peer shuts down a session on which it has finished a call. Without a
// minimum, a peer that accepts and closes would keep both sides busy.
const leastSteady = time.Second

// rest waits for d, or until the connection ends.
func (c *Connection) rest(d time.Duration) {
	c.nextAttempt(d, nil)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.ctx.Done():
	}
}

// watch waits until s takes no more new calls, and returns the reason: its Wire is lost, it has
// ended, or its peer shuts it down.
func (c *Connection) watch(s *Session) error {
	for {
		changed := c.changes()
		switch {
		case s.calls.PeerDrains():
			return codec.ErrUnavailable.Withf("the peer shuts the session down")
		case s.Away():
			return codec.ErrUnavailable.Withf("the wire is lost")
		}
		select {
		case <-changed:
		case <-s.calls.Carrier.Gone():
			return s.Err()
		case <-c.ctx.Done():
			return c.Err()
		}
	}
}

// resumable returns s, which takes no more new calls, and the time until which it can be resumed.
// Otherwise s has ended, or is retired, and resumable returns nil.
func (c *Connection) resumable(s *Session) (*Session, time.Time) {
	switch {
	case s.calls.Context().Err() != nil:
		s.calls.Carrier.Wait()
		return nil, time.Time{}
	case s.calls.PeerDrains():
		c.retire(s)
		return nil, time.Time{}
	}
	return s, time.Now().Add(s.cfg.resumeFor)
}

// mostDials bounds the concurrent calls of Dial of a connection: all but one have missed their
// deadline.
const mostDials = 8

// connect makes attempts until there is a session: s, if it is not nil and is resumed before until,
// or a new one.
func (c *Connection) connect(s *Session, until time.Time, back *wait.Backoff) (*Session, error) {
	ctx := c.ctx
	if c.how.MaxOutage > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.how.MaxOutage)
		defer cancel()
	}
	for {
		next, over, err := c.try(ctx, s)
		switch {
		case err == nil:
			return next, nil
		case c.ctx.Err() != nil:
			return nil, c.Err()
		case over:
			return nil, err
		case s != nil && s.calls.Context().Err() != nil:
			s, until = nil, time.Time{} // s was not resumed in time
		}
		c.node.Logger().Info("connecting failed", "url", transport.ShowURL(c.url), "error", err)
		pause := back.NextBefore(until)
		c.nextAttempt(pause, err)
		if !wait.Sleep(ctx, pause) {
			if c.ctx.Err() != nil {
				return nil, c.Err()
			}
			return nil, c.late(ctx, err)
		}
	}
}

// late returns the error of connecting when ctx left no time for another attempt. err is the error
// of the last attempt.
func (c *Connection) late(ctx context.Context, err error) *Abort {
	a := &Abort{Code: codec.Unavailable, Message: fmt.Sprintf("no connection with %s within the time for it", c.name()), Cause: err}
	end, _ := ctx.Deadline()
	if own, ok := c.ctx.Deadline(); ok && !own.After(end) {
		a.Code = codec.Expired // deadline of the application's context, not MaxOutage
	}
	return a
}

// try is attempt. It also reports whether err is final. Wires and errors may be the application's.
func (c *Connection) try(ctx context.Context, s *Session) (next *Session, over bool, err error) {
	err = codec.ErrUnavailable.Withf("connecting panicked: the log says why")
	guard.Run(c.node.cfg.log, "connecting", func() {
		var failed error
		next, failed = c.attempt(ctx, s)
		over, err = failed != nil && c.how.isFinal(failed), failed
	})
	return next, over, err
}

// attempt tries once to connect, and to resume s unless that is nil.
func (c *Connection) attempt(ctx context.Context, s *Session) (*Session, error) {
	w, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	var was *handshake.Proof
	if s != nil {
		was = &handshake.Proof{Session: s.id, Secret: s.res.Latest(), Received: s.calls.Carrier.Received()}
	}
	h := c.node.newHandshake(w)
	var next *Session
	err = h.Guard(func() error {
		c.node.configure(h)
		a, about, err := h.propose(ctx, was)
		if err != nil {
			return err
		}
		if err = c.how.checkPeer(about); err != nil {
			w.Close()
			return err
		}
		next, err = c.goOn(ctx, h, sessionStart{agreed: a, about: about, dialled: true}, s)
		return err
	})
	return next, err
}

// goOn returns the session on which the handshake has agreed: s, or a new one.
func (c *Connection) goOn(ctx context.Context, h *nodeHandshake, b sessionStart, s *Session) (*Session, error) {
	if s != nil && b.agreed.Session == s.id {
		if err := goOnOver(ctx, s, h.Wire, &b); err != nil {
			h.Wire.Close()
			s.calls.Fail(codec.ErrUnavailable.Withf("the session could not be resumed: %v", err))
			s.calls.Carrier.Wait()
			return nil, err
		}
		return s, nil
	}
	if s != nil {
		s.calls.Fail(codec.ErrUnavailable.Withf("the session could not be resumed: the peer does not have it any more"))
		s.calls.Carrier.Wait()
	}
	b.grant = c.node.cfg.ownGrant()
	return c.node.begin(h, b, c)
}

// goOnOver resumes s over a Wire to a peer that has agreed. The next secret is stored as soon as
// the peer has it. The errors are not final: a new session may begin.
func goOnOver(ctx context.Context, s *Session, w wire.Wire, b *sessionStart) error {
	a := &b.agreed
	if a.Settings != s.res.agreed || a.Codec != s.calls.Coder.Values.Name() {
		return handshake.Transient(nil, "the peer resumes the session, but does not repeat the agreement")
	}
	if a.Secret != [message.SecretSize]byte{} {
		s.res.Replace(s.res.Latest(), a.Secret)
	}
	return s.comeBack(ctx, &resumeRequest{wire: w, about: b.about, received: a.Received})
}

func (c *Connection) dial(ctx context.Context) (wire.Wire, error) {
	ctx, cancel := context.WithTimeout(ctx, c.node.cfg.handshake)
	defer cancel()
	dial := c.how.Dial
	if dial == nil {
		dial = func(ctx context.Context) (wire.Wire, error) {
			// the URL may be one of the application's scheme, too
			return wire.Dial(ctx, c.url, wire.Options{TLS: c.how.tls(c.node.cfg.tls)})
		}
	}
	w, err := callback.Ask(ctx, &c.dials, func() (wire.Wire, error) {
		w, err := dial(ctx)
		if w == nil && err == nil {
			err = codec.ErrUnavailable.Withf("ReconnectConfig.Dial returned no Wire, and no error")
		}
		return w, err
	}, func(w wire.Wire) { w.Close() })
	return w, transport.HideURL(err, c.url)
}
