package asterisque

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
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

// Reconnect says how a [Connection] connects again. The zero Reconnect is ready to use.
type Reconnect struct {
	// First and Most are the waits between attempts: the first attempt is made at once, the next after First, and then after twice as long each time, at most Most. Each wait is by chance
	// up to a half shorter. 0 stands for 50 ms and 5 s.
	First, Most time.Duration

	// GiveUp is after how long without a connection it is given up; 0 is never.
	GiveUp time.Duration

	// Durable is how many calls made with [WithDurable] may be under way at most; 0 stands for 1,024.
	Durable int

	// OnState is called with each change of state, one after the other, and for Lost with the reason. It must not block. It may be nil.
	OnState func(c *Connection, state ConnectionState, err error)

	// Dial makes the Wire, instead of a URL. It may be nil.
	Dial func(ctx context.Context) (wire.Wire, error)
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
	return callOn(ctx, c, newCallConfig(opts), func(s *Session, cfg callConfig) ([]byte, error) { return s.call(ctx, function, params, cfg) })
}

// Open is [Session.Open] on the present session.
func (c *Connection) Open(ctx context.Context, function uint16, params []byte, opts ...CallOption) (*pipe.Pipe, error) {
	cfg := newCallConfig(opts)
	s, a := c.session(ctx, &cfg)
	if a != nil {
		return nil, a
	}
	return s.open(ctx, function, "", params, cfg)
}

// callOn makes a call on the session that on finds, and if it is durable again on the next one.
func callOn[R any](ctx context.Context, on Caller, cfg callConfig, call func(s *Session, cfg callConfig) (R, error)) (result R, err error) {
	if cfg.durable {
		err = durably(ctx, on, cfg, func(s *Session, cfg callConfig) error {
			result, err = call(s, cfg)
			return err
		})
		return result, err
	}
	s, a := on.session(ctx, &cfg)
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
	case state == Connected && s.ctx.Err() == nil && (!cfg.failFast || !s.away.Load()):
		return s, nil
	case c.ctx.Err() != nil:
		return nil, neverSent(c.Err())
	case cfg.failFast:
		return nil, neverSent(codec.ErrUnavailable.Withf("there is no connection with %s at the moment", c.name()))
	}
	if cfg.ttl > 0 { // the wait is part of it
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
	back := backoff{first: c.how.First, most: c.how.Most}
	for c.ctx.Err() == nil {
		next, err := c.connect(s, &back)
		if err != nil {
			c.end(err)
			break
		}
		s = next
		begin := time.Now()
		c.set(s, Connected, nil)
		if err := c.watch(s); err != nil { // the session is over
			if s.ctx.Err() != nil {
				<-s.gone
				s = nil
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
			c.rest(back.next())
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

// connect tries until there is a session: s, if that can be resumed, or a new one.
func (c *Connection) connect(s *Session, back *backoff) (*Session, error) {
	ctx := c.ctx
	if c.how.GiveUp > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.how.GiveUp)
		defer cancel()
	}
	for {
		next, err := c.attempt(ctx, s)
		switch {
		case err == nil:
			return next, nil
		case c.ctx.Err() != nil:
			return nil, c.Err()
		case hopeless(err):
			return nil, err
		case s != nil && s.ctx.Err() != nil:
			s = nil // it was not resumed in time
		}
		c.node.cfg.log.Info("connecting failed", "url", c.url, "error", err)
		if !sleep(ctx, back.next()) {
			if c.ctx.Err() != nil {
				return nil, c.Err()
			}
			return nil, c.late(ctx, err)
		}
	}
}

// late returns the error of connecting until ctx left no time for another attempt, of which the last one failed with err.
func (c *Connection) late(ctx context.Context, err error) *Abort {
	a := &Abort{Code: codec.Unavailable, Message: fmt.Sprintf("no connection with %s within the time for it", c.name()), Cause: err}
	end, _ := ctx.Deadline()
	if own, ok := c.ctx.Deadline(); ok && !own.After(end) {
		a.Code = codec.Expired // that of the context which the application gave, and not GiveUp
	}
	return a
}

// attempt tries once to connect, and to resume s unless that is nil.
func (c *Connection) attempt(ctx context.Context, s *Session) (*Session, error) {
	w, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	var was *former
	if s != nil {
		was = &former{session: s.id, secret: s.res.secret, received: s.got.Load()}
	}
	h := handshake{w: w, cfg: c.node.configFor(w)}
	a, err := h.dial(ctx, was)
	if err != nil {
		return nil, err
	}
	if was != nil && a.session == s.id {
		if err := s.comeBack(ctx, &comeback{wire: w, received: a.received}); err != nil {
			w.Close()
			s.fail(codec.ErrUnavailable.Withf("the session could not be resumed: %v", err))
			<-s.gone
			return nil, err
		}
		return s, nil
	}
	if s != nil {
		s.fail(codec.ErrUnavailable.Withf("the session could not be resumed: the peer does not have it any more"))
		<-s.gone
	}
	return c.node.begin(&h, a, c.node.ownGrant(), true, func(s *Session) {
		s.onAway = func() { c.lost(s) }
	})
}

func (c *Connection) dial(ctx context.Context) (wire.Wire, error) {
	ctx, cancel := context.WithTimeout(ctx, c.node.cfg.handshake)
	defer cancel()
	if c.how.Dial != nil {
		return c.how.Dial(ctx)
	}
	return wire.Dial(ctx, c.url, wire.Options{TLS: c.node.cfg.tls})
}

// hopeless reports whether connecting again would fail in the same way.
func hopeless(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		alert        tls.AlertError
		header       tls.RecordHeaderError
		unknown      x509.UnknownAuthorityError
		host         x509.HostnameError
		invalid      x509.CertificateInvalidError
	)
	if errors.As(err, &verification) || errors.As(err, &alert) || errors.As(err, &header) || errors.As(err, &unknown) || errors.As(err, &host) || errors.As(err, &invalid) {
		return true
	}
	var operation *net.OpError
	if errors.As(err, &operation) && operation.Op == "remote error" {
		return true // an alert: the peer does not accept this side's certificate, or misses it
	}
	refused := errors.Is(err, ErrHandshake) || errors.Is(err, ErrUnauthorized)
	return refused && !errors.Is(err, errPassing) || errors.Is(err, wire.ErrURL) || err == error(errNodeClosed) // its code says less
}
