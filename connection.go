package asterisque

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/pipe"
)

// Caller is what calls are made on: a [Session], or a [Connection], which finds one.
type Caller interface {
	// session returns the session to call on.
	session(ctx context.Context, cfg *callConfig) (*Session, *Abort)
}

// session implements Caller.
func (s *Session) session(context.Context, *callConfig) (*Session, *Abort) { return s, nil }

// ConnectionState says whether a [Connection] has a session.
type ConnectionState uint8

const (
	Connected    ConnectionState = iota + 1
	Reconnecting                 // calls wait, or fail at once: see WithFailFast
	Lost                         // for good
)

func (s ConnectionState) String() string {
	switch s {
	case Connected:
		return "connected"
	case Reconnecting:
		return "reconnecting"
	case Lost:
		return "lost"
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Connection keeps a session with one node: when its Wire is lost, it connects again. If both nodes have [WithResume] the session goes on, with its calls and streams; otherwise, or
// when the peer does not have the session any more, these end with ErrUnavailable or ErrSessionClosed, and calls go to a new session. All methods are safe for concurrent use.
type Connection struct {
	node *Node // these are fixed
	url  string
	how  Reconnect
	ctx  context.Context // ends with the connection; its cause is why
	end  context.CancelCauseFunc
	away chan *Session // holds one whose Wire is lost

	leaving atomic.Bool   // Shutdown was called: when the session ends, the connection does
	over    chan struct{} // closed when run has returned; fixed

	mu      sync.Mutex
	current *Session        // guarded by mu, as all below; nil without
	state   ConnectionState // 0 before the first session
	changed chan struct{}   // closed when either changes
	durable durables
}

// Connect connects to the node that listens at a URL, waits for the first session, and from then on keeps one, until Close, or until ctx ends, which governs the Connection as long as it lives.
// Attempts that fail are repeated, the first ones as well, except for what cannot succeed by repeating: a certificate that is not accepted, a version or codec that does not fit, a peer that
// refuses this side. Such an error ends the Connection at once, also later.
func (n *Node) Connect(ctx context.Context, url string, how Reconnect) (*Connection, error) {
	if n.invalid != nil {
		return nil, n.invalid
	}
	c := &Connection{node: n, url: url, how: how, away: make(chan *Session, 1), over: make(chan struct{}), changed: make(chan struct{})}
	c.ctx, c.end = context.WithCancelCause(ctx)
	c.durable.init(how.Durable)
	if !n.keep(c) {
		c.end(errNodeClosed)
		return nil, errNodeClosed
	}
	go c.run() // ends with c.ctx
	if _, a := c.wait(ctx); a != nil {
		c.Close()
		return nil, a
	}
	return c, nil
}

// Close closes the connection and its session. It returns when both have ended.
func (c *Connection) Close() error {
	c.end(codec.ErrSessionClosed.Withf("the connection was closed by this side"))
	<-c.over
	return nil
}

// Shutdown shuts the session down, as [Session.Shutdown] does, and closes the connection.
func (c *Connection) Shutdown(ctx context.Context) error {
	var err error
	c.leaving.Store(true)
	if s := c.Session(); s != nil {
		err = s.Shutdown(ctx)
	}
	c.Close()
	return err
}

// State returns the present state.
func (c *Connection) State() ConnectionState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Session returns the present session, or nil if there is none. One that can be resumed stays while the connection is being made again.
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
func (c *Connection) Open(ctx context.Context, function uint16, params []byte, opts ...CallOption) (*pipe.Pipe, error) {
	cfg := newCallConfig(opts)
	s, a := c.session(ctx, cfg)
	if a != nil {
		return nil, a
	}
	return s.open(ctx, function, "", params, cfg)
}

// callOn makes a call on the session that on finds, and if it is durable again on the next one.
func callOn[R any](ctx context.Context, on Caller, cfg *callConfig, call func(s *Session, cfg *callConfig) (R, error)) (result R, err error) {
	if cfg.durable {
		err = durably(ctx, on, cfg, func(s *Session, cfg *callConfig) error {
			result, err = call(s, cfg)
			return err
		})
		return result, err
	}
	s, a := on.session(ctx, cfg)
	if a != nil {
		return result, a
	}
	return call(s, cfg)
}

// session implements Caller.
func (c *Connection) session(ctx context.Context, cfg *callConfig) (*Session, *Abort) {
	c.mu.Lock()
	s, state := c.current, c.state
	c.mu.Unlock()
	switch {
	case s != nil && s.ctx.Err() == nil && (!s.away.Load() || state == Connected && !cfg.failFast): // one that has just come back is up, whatever state says yet
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
		if s != nil && s.ctx.Err() == nil {
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

// set notes the session and the state.
func (c *Connection) set(s *Session, state ConnectionState, err error) {
	c.mu.Lock()
	was := c.state
	if s != c.current && s != nil {
		c.durable.restart(s)
	}
	c.current, c.state = s, state
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	if state != was && c.how.OnState != nil {
		c.how.OnState(c, state, err)
	}
}

func (c *Connection) name() string {
	if c.url == "" {
		return "the peer"
	}
	return c.url
}

// run keeps a session until the connection is over.
func (c *Connection) run() {
	defer close(c.over)
	defer c.node.release(c)
	var s *Session
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
		c.set(s, Connected, nil)
		if err := c.watch(s); err != nil { // the session is over, or away
			until = time.Now().Add(s.cfg.resumeFor)
			if s.ctx.Err() != nil {
				<-s.gone
				s, until = nil, time.Time{}
			}
			if s == nil && c.leaving.Load() {
				c.end(codec.ErrSessionClosed.Withf("the connection was shut down by this side"))
				break
			}
			c.set(s, Reconnecting, err)
		}
		if time.Since(begin) >= steady {
			back.step = 0 // it held: the next loss is another matter
		} else {
			c.rest(back.nextBefore(until))
		}
	}
	if s != nil {
		s.fail(codec.AbortOf(c.Err()))
		<-s.gone
	}
	c.set(nil, Lost, c.Err())
}

// steady is how long a connection has to hold for the next attempt to be made at once. Without that, a peer that accepts and closes would keep both sides busy.
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

// watch returns when s is away or over.
func (c *Connection) watch(s *Session) error {
	for {
		select {
		case lost := <-c.away:
			if lost == s { // and not the one before
				return codec.ErrUnavailable.Withf("the wire is lost")
			}
		case <-s.gone:
			return s.Err()
		case <-c.ctx.Done():
			return c.Err()
		}
	}
}

// lost is called by a session whose Wire is lost.
func (c *Connection) lost(s *Session) {
	select {
	case <-c.away: // of the session before, which nobody wants to know any more
	default:
	}
	c.away <- s
}
