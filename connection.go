package asterisque

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// Reconnection says how a [Connection] connects again. The zero Reconnection is ready to use.
type Reconnection struct {
	// First and Most are the waits between attempts: when a session is lost, or its peer shuts it
	// down, the first attempt is made after up to half of First, by chance, so that the clients of
	// a server that goes do not come all at once; the next after First, and then after twice as
	// long each time, at most Most. Each of these waits is by chance up to a half shorter. A
	// session that is lost within its first second counts as an attempt that failed, unless its
	// peer shuts it down after a call. 0 stands for 1 s and 5 s. While a session waits to be
	// resumed, a wait is cut if it would last longer than that can be done. One of less than 1 ms,
	// as of GiveUp, is an error.
	First, Most time.Duration

	// GiveUp is after how long without a connection it is given up; 0 is never.
	GiveUp time.Duration

	// Persist lets the connection go on trying after most of the errors that are final by default,
	// which [Node.Connect] lists: a version or codec that does not fit, a peer that refuses this
	// side. It is for programs that nobody restarts, while somebody may mend the other side. A URL
	// that nothing can be made of is final nevertheless.
	Persist bool

	// Background lets [Node.Connect] return before there is a session. Calls wait for it.
	Background bool

	// ServerName is the name that the certificate of the peer has to prove, if that is not the host
	// of the URL. A Dial of the program does not see it. It may be empty.
	ServerName string

	// PeerID is what the peer has to call itself ([WithID]): where another node has come to listen,
	// an attempt fails. It proves nothing. Empty lets every peer do.
	PeerID string

	// Durable is how many calls made with [WithDurable] may be under way at most; 0 stands for
	// 1,024.
	Durable int

	// OnState is called with each change of state, one after the other, for Lost and Reconnecting
	// with the reason: the Wire is lost, the session is over, or the peer shuts it down. It runs on
	// a goroutine of its own: it may block, and use or close the connection, which may have gone on
	// meanwhile. If it does not keep up with 16,384 changes, some are left out, and logged, but
	// never the last one. It may be nil.
	OnState func(c *Connection, state ConnectionState, err error)

	// Dial makes the Wire, instead of a URL. It runs on a goroutine of its own, and has the time of
	// its context: a Wire that it returns later is closed. While 8 calls of it have not returned
	// there are no more. If it panics, that attempt has failed. It may be nil.
	Dial func(ctx context.Context) (wire.Wire, error)
}

// Connection keeps a session with one node: when its Wire is lost, it connects again. If both nodes
// have [WithResume] the session goes on, with its calls and streams; otherwise, or when the peer
// does not have the session any more, these end with ErrUnavailable or ErrSessionClosed, and calls
// go to a new session.
//
// A call waits for a session, within its context and its time to live, unless [WithFailFast] says
// otherwise. One that certainly did not run, because its session ended before it was sent, or
// because the peer was shutting that down, is made again on the next session. So a peer which is
// replaced by another one in good order costs no call. The error of a call that has waited in vain
// has an [Outage], which says since when there is no session, and why.
//
// When the peer shuts the session down ([Session.Shutdown]), the connection connects again within
// half of Reconnection.First, and calls go to the new session. What runs on the old session,
// streams included, goes on to its end, and what the peer calls back within it is run; then this
// side closes the old session. Should that lose its Wire meanwhile, it is not resumed. OnState sees
// Reconnecting, and then Connected. At most 16 old sessions go on at once: before there are more,
// the connection waits until one has ended.
//
// Only the errors that [Node.Connect] lists as final end a Connection by themselves.
//
// All methods are safe for concurrent use. A nil *Connection, as [Node.Connect] returns beside an
// error, is one that is over: what would use it fails with ErrUnavailable.
type Connection struct {
	node *Node // these are fixed
	url  string
	how  Reconnection
	ctx  context.Context // ends with the connection; its cause is why
	end  context.CancelCauseFunc

	dials question // how.Dial; fixed

	over chan struct{} // closed when nothing of it is left; fixed

	finishing atomic.Bool // Shutdown was called: when the session ends, the connection does

	// current, for those who choose it for each call: many of them would wait for mu
	chosen atomic.Pointer[Session]

	mu      sync.Mutex
	current *Session // guarded by mu, as all below; nil without
	state   ConnectionState
	// closed when either changes, a session loses its Wire or drains, or one has retired
	changed chan struct{}
	retired int    // sessions that go on until their calls are over
	outage  Outage // while nothing takes new calls; its Since is zero otherwise
	durable durables
}

// errNoConnection is what a nil *Connection returns.
var errNoConnection error = neverSent(codec.ErrUnavailable.Withf("there is no connection: the *Connection is nil, as beside an error of Node.Connect"))

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

// Shutdown shuts the session down, as [Session.Shutdown] does, waits for old ones that the peer has
// shut down, and closes the connection. If ctx ends first, all are closed at once. With the context
// of a handler of one of these sessions, it does not wait.
func (c *Connection) Shutdown(ctx context.Context) error {
	if c == nil {
		return errNoConnection
	}
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
	if c == nil {
		return Lost
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Session returns the present session, or nil if there is none. One that can be resumed stays while
// the connection is being made again, one that the peer has shut down does not.
func (c *Connection) Session() *Session {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

// Done returns a channel that is closed when the connection is over: Lost, or closed.
func (c *Connection) Done() <-chan struct{} {
	if c == nil {
		return closedChan
	}
	return c.ctx.Done()
}

// Err returns nil, and when the connection is over why.
func (c *Connection) Err() error {
	if c == nil {
		return errNoConnection
	}
	return context.Cause(c.ctx)
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
			return nil, c.waitedInVain(ctx)
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
	c.chosen.Store(s)
	c.outage.note(e, err)
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

// takesCalls reports whether new calls may be made on s, which may be nil.
func takesCalls(s *Session) bool {
	return s != nil && s.ctx.Err() == nil && !s.peerDraining.Load()
}

// awaitRetired waits until at most n sessions retire, or ctx ends.
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

// sessionChanged implements sessionHolder: it wakes whoever waits for that.
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

// changes returns a channel that is closed when something changes.
func (c *Connection) changes() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}
