package asterisque

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/callback"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/handshake"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// ReconnectConfig configures how a [Connection] reconnects. The zero ReconnectConfig is ready to
// use.
type ReconnectConfig struct {
	// First and Most are the waits between attempts; 0 stands for 1 s and 5 s. When a session is
	// lost, or its peer shuts it down, the first attempt follows after a random time of at most
	// half of First, so that the clients of a restarting server do not reconnect all at once. The
	// next one follows after First, and then after twice as long each time, at most Most. Each of
	// these waits is randomly shortened by up to a half. A session that is lost within its first
	// second counts as a failed attempt, unless its peer shuts it down after a call. While a
	// suspended session can be resumed, a wait ends before its time is over. A wait below 1 ms is
	// an error, as for MaxOutage.
	First, Most time.Duration

	// MaxOutage is the time without a connection after which the Connection ends; 0 is never.
	MaxOutage time.Duration

	// RetryFatal continues the attempts after most errors that are final by default, as listed at
	// [Node.Connect]: a version or codec that does not match, a peer that rejects this side. It is
	// for programs that are not restarted while their peer may be repaired. An invalid URL is still
	// final.
	RetryFatal bool

	// Background makes [Node.Connect] return before there is a session. Calls wait for it.
	Background bool

	// ServerName is the name that the certificate of the peer has to prove, if it is not the host
	// of the URL. A Dial function does not receive it. It may be empty.
	ServerName string

	// PeerID is the required name of the peer ([WithID]): an attempt fails if another node listens
	// there. It proves nothing. With an empty PeerID every peer is accepted.
	PeerID string

	// Durable is the maximum number of concurrent calls made with [WithDurable]; 0 stands for
	// 1,024.
	Durable int

	// OnState is called for each change of state, one after the other. For Lost and Reconnecting,
	// err is the reason: the Wire is lost, the session has ended, or the peer shuts it down.
	// OnState runs on a goroutine of its own: it may block, and may use or close the connection.
	// The state may have changed meanwhile. Beyond 16,384 pending changes, some are skipped and
	// logged, but never the last one. It may be nil.
	OnState func(c *Connection, state ConnectionState, err error)

	// Dial makes the Wire, in place of a URL. It runs on a goroutine of its own, until its context
	// ends: a Wire that it returns later is closed. At most 8 calls of Dial run at once. If Dial
	// panics, the attempt has failed. It may be nil.
	Dial func(ctx context.Context) (wire.Wire, error)
}

// Connection maintains a session with one node: when its Wire is lost, it reconnects. If both nodes
// have [WithResume] the session is resumed, with its calls and streams. Otherwise, or when the peer
// no longer has the session, its calls and streams end with ErrUnavailable or ErrSessionClosed, and
// calls go to a new session.
//
// A call waits for a session, within its context and its time to live, unless [WithFailFast] is
// set. A call that certainly did not run, because its session ended before it was sent, or because
// the peer was shutting the session down, is repeated on the next session. A graceful restart of
// the peer therefore fails no call. The error of a call that found no session has an
// [NotConnectedError], with the begin and the cause of the outage.
//
// When the peer shuts the session down ([Session.Shutdown]), the connection reconnects within half
// of ReconnectConfig.First, and calls go to the new session. Running calls on the old session,
// streams included, continue to their end, and nested calls of the peer within them are run; then
// this side closes the old session. If the old session loses its Wire meanwhile, it is not resumed.
// OnState reports Reconnecting, and then Connected. At most 16 old sessions exist at once: above
// that the connection waits until one of them has ended.
//
// Only the errors that [Node.Connect] lists as final end a Connection by themselves.
//
// All methods are safe for concurrent use. A nil *Connection, as [Node.Connect] returns with an
// error, has ended: operations on it fail with ErrUnavailable.
type Connection struct {
	node *Node // these are fixed
	url  string
	how  ReconnectConfig
	ctx  context.Context // ends with the connection, with its cause
	end  context.CancelCauseFunc

	dials callback.Query // how.Dial; fixed

	over chan struct{} // closed when its sessions and goroutines have ended; fixed

	finishing atomic.Bool // Shutdown was called: the end of the session ends the connection

	// current, for choices per call, which would contend for mu
	chosen atomic.Pointer[Session]

	mu      sync.Mutex
	current *Session // guarded by mu, as all below; nil without
	state   ConnectionState
	// closed when either changes, a session loses its Wire or drains, or a retired one has ended
	changed chan struct{}
	retired int               // sessions that continue until their calls have ended
	outage  NotConnectedError // while no session takes new calls; its Since is zero otherwise
	durable durableCalls
}

// errNoConnection is the error of a nil *Connection.
var errNoConnection error = aborts.NeverSent(codec.ErrUnavailable.Withf("there is no connection: the *Connection is nil, as beside an error of Node.Connect"))

// Close closes the connection and its sessions, old ones included. It returns when all have ended.
func (c *Connection) Close() error {
	if c == nil {
		return errNoConnection
	}
	c.closeFor(codec.ErrSessionClosed.Withf("the application has closed the connection"))
	return nil
}

// closeFor implements nodeConnection.
func (c *Connection) closeFor(cause error) {
	c.end(cause)
	<-c.over
}

// Shutdown shuts the session down, as [Session.Shutdown] does, waits for old sessions that the peer
// has shut down, and closes the connection. If ctx ends first, all are closed at once. Called with
// the context of a handler of one of these sessions, Shutdown does not wait.
func (c *Connection) Shutdown(ctx context.Context) error {
	if c == nil {
		return errNoConnection
	}
	if s := calledBy(ctx); s != nil && s.holder == sessionHolder(c) {
		c.finishing.Store(true)
		s.calls.AnnounceEnd(carrier.Now)
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

// State returns the present state.
func (c *Connection) State() ConnectionState {
	if c == nil {
		return Lost
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Session returns the present session, or nil if there is none. A session that can be resumed stays
// present while the connection reconnects; a session that the peer has shut down does not.
func (c *Connection) Session() *Session {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

// Done returns a channel that is closed when the connection has ended: Lost, or closed.
func (c *Connection) Done() <-chan struct{} {
	if c == nil {
		return wait.Over
	}
	return c.ctx.Done()
}

// Err returns nil until the connection has ended, and then the cause.
func (c *Connection) Err() error {
	if c == nil {
		return errNoConnection
	}
	return context.Cause(c.ctx)
}

// wait waits for a session that is up, or suspended and to be resumed.
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
			return nil, aborts.NeverSent(c.Err())
		case <-ctx.Done():
			return nil, c.waitedInVain(ctx)
		}
	}
}

// stateReports is the view of a Connection for the reports of its states.
type stateReports Connection

// LogAttrs implements callback.Source.
func (*stateReports) LogAttrs() []any { return nil }

// Closed implements callback.Source: reports follow also the end.
func (*stateReports) Closed() *bool { return new(bool) }

// set records the session, and the event e with its cause err.
func (c *Connection) set(s *Session, e connectionEvent, err error) {
	c.mu.Lock()
	state, changed := c.state.next(e)
	if s != c.current && s != nil {
		c.durable.moveTo(s)
	}
	c.current, c.state = s, state
	c.chosen.Store(s)
	c.outage.note(e, err)
	c.signalLocked()
	c.mu.Unlock()
	if changed && c.how.OnState != nil {
		c.node.reports.Add((*stateReports)(c), callback.Report{Name: "ReconnectConfig.OnState", Kind: callback.State, N: 1, Call: func(int) { c.how.OnState(c, state, err) }})
	}
}

// name returns the peer's URL without secrets, for errors.
func (c *Connection) name() string {
	if c.url == "" {
		return "the peer"
	}
	return transport.ShowURL(c.url)
}

// takesCalls reports whether new calls may be made on s, which may be nil.
func takesCalls(s *Session) bool {
	return s != nil && s.calls.Context().Err() == nil && !s.calls.PeerDrains()
}

// awaitRetired waits until at most n sessions are retired, or ctx ends.
func (c *Connection) awaitRetired(ctx context.Context, n int) {
	for {
		c.mu.Lock()
		few, changed := c.retired <= n, c.changed
		c.mu.Unlock()
		if few {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// sessionChanged implements sessionHolder: it wakes all waiters.
func (c *Connection) sessionChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.signalLocked()
}

// sessionEnded implements sessionHolder.
func (c *Connection) sessionEnded(s *Session) { c.node.sessionEnded(s) }

func (c *Connection) signalLocked() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// changes returns a channel that is closed at the next change.
func (c *Connection) changes() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// ConnectionState reports whether a [Connection] has a session for new calls.
//
//	connecting --sessionUp--> Connected --sessionDown--> Reconnecting
//	    |                      |     ^                     |     |
//	    |                      |     +------sessionUp------+     |
//	    +----------------------+----------------+----------------+
//	                           connectionOver   |
//	                                            v
//	                                           Lost
type ConnectionState uint8

// connecting is the state before the first session.
const connecting ConnectionState = 0

const (
	Connected ConnectionState = 1
	// no session for new calls: they wait, or fail at once, see WithFailFast
	Reconnecting ConnectionState = 2
	Lost         ConnectionState = 3 // final
)

func (s ConnectionState) String() string {
	switch s {
	case connecting:
		return "connecting"
	case Connected:
		return "connected"
	case Reconnecting:
		return "reconnecting"
	case Lost:
		return "lost"
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// connectionEvent is an event of a connection.
type connectionEvent uint8

const (
	sessionUp      connectionEvent = iota // there is a session for new calls
	sessionDown                           // it is lost, has ended, or is shut down
	connectionOver                        // the connection was closed, or has failed for good
)

// next returns the state after e. It returns s and false for an impossible e.
func (s ConnectionState) next(e connectionEvent) (_ ConnectionState, ok bool) {
	switch {
	case s == Lost:
		return s, false
	case e == connectionOver:
		return Lost, true
	case e == sessionUp && s != Connected:
		return Connected, true
	case e == sessionDown && s == Connected:
		return Reconnecting, true
	}
	return s, false
}

// checkPeer returns an error if the peer is not the required one.
func (r *ReconnectConfig) checkPeer(p Peer) error {
	if r.PeerID == "" || p.ID == r.PeerID {
		return nil
	}
	return codec.ErrUnavailable.Withf("the node there calls itself %q, and not %q", p.ID, r.PeerID)
}

// tls returns the TLS configuration for dialling, made from that of the node. nil stands for the
// defaults.
func (r *ReconnectConfig) tls(own *tls.Config) *tls.Config {
	if r.ServerName == "" {
		return own
	}
	if own == nil {
		return &tls.Config{ServerName: r.ServerName}
	}
	own = own.Clone()
	own.ServerName = r.ServerName
	return own
}

// isFinal reports whether err, of an attempt, ends the connection. [Node.Connect] lists such
// errors, and explains the other ones.
func (r *ReconnectConfig) isFinal(err error) bool {
	switch {
	case errors.Is(err, wire.ErrURL), err == error(handshake.ErrNodeClosed):
		return true // RetryFatal does not change these
	case r.RetryFatal, errors.Is(err, handshake.ErrTransient): // which has a final code
		return false
	}
	return errors.Is(err, ErrUnauthorized) || errors.Is(err, ErrHandshake)
}
