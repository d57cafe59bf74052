package asterisque

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// Connection keeps a session with one node: when its Wire is lost, it connects again. If both nodes
// have [WithResume] the session goes on, with its calls and streams; otherwise, or when the peer
// does not have the session any more, these end with ErrUnavailable or ErrSessionClosed, and calls
// go to a new session.
//
// When the peer shuts the session down ([Session.Shutdown]), the connection connects again at once,
// and calls go to the new session: also those that the peer has refused for that reason, so that a
// peer which is replaced by another one in good order costs no call. What runs on the old session,
// streams included, goes on to its end, and what the peer calls back within it is run; then this
// side closes the old session. Should that lose its Wire meanwhile, it is not resumed. OnState sees
// Reconnecting, and then Connected. At most 16 old sessions go on at once: before there are more,
// the connection waits until one has ended.
//
// All methods are safe for concurrent use.
type Connection struct {
	node *Node // these are fixed
	url  string
	how  Reconnection
	ctx  context.Context // ends with the connection; its cause is why
	end  context.CancelCauseFunc

	dials question // how.Dial; fixed

	over chan struct{} // closed when nothing of it is left; fixed

	finishing atomic.Bool // Shutdown was called: when the session ends, the connection does

	mu      sync.Mutex
	current *Session // guarded by mu, as all below; nil without
	state   ConnectionState
	// closed when either changes, a session loses its Wire or drains, or one has retired
	changed chan struct{}
	retired int // sessions that go on until their calls are over
	durable durables
}

// newConnection returns a connection that has no session yet. The caller lets it run.
func newConnection(n *Node, life context.Context, url string, how Reconnection) *Connection {
	c := &Connection{node: n, url: url, how: how, over: make(chan struct{}), changed: make(chan struct{})}
	c.dials = newQuestion(n.cfg.log, "Reconnection.Dial", "Reconnection.Dial", mostDials)
	c.ctx, c.end = context.WithCancelCause(life)
	c.durable.init(how.Durable)
	return c
}

// Close closes the connection and its sessions, old ones included. It returns when all have ended.
func (c *Connection) Close() error {
	c.closeFor(codec.ErrSessionClosed.Withf("the connection was closed by this side"))
	return nil
}

// closeFor implements nodeConnection.
func (c *Connection) closeFor(cause error) {
	c.end(cause)
	<-c.over
}

// Shutdown shuts the session down, as [Session.Shutdown] does, waits for old ones that the peer has
// shut down, and closes the connection. If ctx ends first, all are closed at once. With the context
// of a handler of one of these sessions, it does not wait.
func (c *Connection) Shutdown(ctx context.Context) error {
	if s := calledBy(ctx); s != nil && s.holder == sessionHolder(c) {
		c.finishing.Store(true)
		s.announceEnd()
		go c.Shutdown(context.Background()) // ends with the running calls
		return nil
	}
	var err error
	c.finishing.Store(true)
	if s := c.Session(); s != nil {
		err = s.Shutdown(ctx)
	}
	c.awaitRetired(ctx, 0)
	if err == nil {
		err = ctx.Err()
	}
	c.Close()
	return err
}

// logged implements observed.
func (c *Connection) logged() []any { return nil }

// closed implements observed: it is never.
func (c *Connection) closed() *bool { return new(bool) }

// State returns the present state.
func (c *Connection) State() ConnectionState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Session returns the present session, or nil if there is none. One that can be resumed stays while
// the connection is being made again, one that the peer has shut down does not.
func (c *Connection) Session() *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

// Done returns a channel that is closed when the connection is over: Lost, or closed.
func (c *Connection) Done() <-chan struct{} { return c.ctx.Done() }

// Err returns nil, and when the connection is over why.
func (c *Connection) Err() error { return context.Cause(c.ctx) }

// Call is [Session.Call] on the present session.
func (c *Connection) Call(ctx context.Context, function uint16, params []byte, opts ...CallOption) ([]byte, error) {
	return callOn(ctx, c, newCallConfig(opts), func(s *Session, cfg *callConfig) ([]byte, error) { return s.call(ctx, function, params, cfg) })
}

// Open is [Session.Open] on the present session.
func (c *Connection) Open(life context.Context, function uint16, params []byte, opts ...CallOption) (*pipe.Pipe, error) {
	return onSession(life, c, newCallConfig(opts), func(s *Session, cfg *callConfig) (*pipe.Pipe, error) {
		return s.open(life, function, "", params, cfg)
	})
}

// session implements Caller.
func (c *Connection) session(ctx context.Context, cfg *callConfig) (*Session, *Abort) {
	c.mu.Lock()
	s, state := c.current, c.state
	c.mu.Unlock()
	switch {
	case takesCalls(s) && (!s.Away() || state == Connected && !cfg.failFast):
		// one that has just come back is up, whatever state says yet
		return s, nil
	case c.ctx.Err() != nil:
		return nil, neverSent(c.Err())
	case cfg.failFast:
		return nil, neverSent(codec.ErrUnavailable.Withf("there is no connection with %s at the moment", c.name()))
	}
	if cfg.ttl > 0 { // the wait is part of it; such a cfg is the call's own
		end := time.Now().Add(cfg.ttl)
		defer func() { cfg.ttl = max(time.Until(end), 1) }()
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end)
		defer cancel()
	}
	return c.wait(ctx)
}

// wait waits for a session that is up, or away and to be resumed.
func (c *Connection) wait(ctx context.Context) (*Session, *Abort) {
	for {
		c.mu.Lock()
		s, changed := c.current, c.changed
		c.mu.Unlock()
		if takesCalls(s) {
			return s, nil
		}
		select {
		case <-changed:
		case <-c.ctx.Done():
			return nil, neverSent(c.Err())
		case <-ctx.Done():
			return nil, neverSent(contextError(ctx))
		}
	}
}

// set notes the session, and what has happened because of err.
func (c *Connection) set(s *Session, e connectionEvent, err error) {
	c.mu.Lock()
	state, changed := c.state.next(e)
	if s != c.current && s != nil {
		c.durable.moveTo(s)
	}
	c.current, c.state = s, state
	c.signalLocked()
	c.mu.Unlock()
	if changed && c.how.OnState != nil {
		c.node.reports.add(c, report{what: "Reconnection.OnState", kind: keepState, n: 1, tell: func(int) { c.how.OnState(c, state, err) }})
	}
}

// name is for errors.
func (c *Connection) name() string {
	if c.url == "" {
		return "the peer"
	}
	return transport.ShowURL(c.url)
}

// run keeps a session until the connection is over.
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

// conclude ends all that the connection has, s included, unless that is nil.
func (c *Connection) conclude(s *Session) {
	defer close(c.over)
	defer c.node.removeConnection(c)
	c.end(codec.ErrPanicked.Withf("the application has ended the goroutine of the connection"))
	if s != nil {
		s.fail(abortOf(c.Err()))
		s.carrier.Wait()
	}
	c.awaitRetired(context.Background(), 0)
	c.set(nil, connectionOver, c.Err())
}

// keepSession keeps a session until the connection ends. It returns the last one, or nil if that is
// over.
func (c *Connection) keepSession() (s *Session) {
	var until time.Time // when s cannot be resumed any more; zero without s
	back := backoff{first: c.how.First, most: c.how.Most}
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
		if s, until = c.resumable(s); s == nil && c.finishing.Load() {
			c.awaitRetired(c.ctx, 0)
			c.end(codec.ErrSessionClosed.Withf("the connection was shut down by this side"))
			break
		}
		c.set(s, sessionDown, err)
		c.awaitRetired(c.ctx, mostRetired-1)
		if time.Since(begin) >= steady {
			back.step = 0 // it held: the next loss is another matter
		} else {
			c.rest(back.nextBefore(until))
		}
	}
	return s
}

// steady is how long a connection has to hold for the next attempt to be made at once. Without
// that, a peer that accepts and closes would keep both sides busy.
const steady = time.Second

// rest waits, but not beyond the end of the connection.
func (c *Connection) rest(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.ctx.Done():
	}
}

// watch returns why s takes no new calls any more: its Wire is lost, it is over, or its peer shuts
// it down.
func (c *Connection) watch(s *Session) error {
	for {
		changed := c.changes()
		switch {
		case s.peerDraining.Load():
			return codec.ErrUnavailable.Withf("the peer shuts the session down")
		case s.Away():
			return codec.ErrUnavailable.Withf("the wire is lost")
		}
		select {
		case <-changed:
		case <-s.carrier.Gone():
			return s.Err()
		case <-c.ctx.Done():
			return c.Err()
		}
	}
}

// resumable returns s, which takes no new calls any more, if it can be resumed, and until when.
// Otherwise s is over, or retires.
func (c *Connection) resumable(s *Session) (*Session, time.Time) {
	switch {
	case s.ctx.Err() != nil:
		s.carrier.Wait()
		return nil, time.Time{}
	case s.peerDraining.Load():
		c.retire(s)
		return nil, time.Time{}
	}
	return s, time.Now().Add(s.cfg.resumeFor)
}
