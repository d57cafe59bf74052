package asterisque

import (
	"context"
	"crypto/x509"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/internal/callback"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/handshake"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/internal/resume"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// Session is the conversation of two nodes over a Wire. Both sides may call functions of the other,
// at the same time. All methods are safe for concurrent use. A nil *Session, as [SessionOf] and
// [Connection.Session] may return, has ended: operations on it fail with ErrUnavailable.
type Session struct {
	id     SessionID // these are fixed once the handshake is over
	shared *sharedState
	cfg    *sessionConfig

	peerID string // see Peer

	calls call.Calls // locks itself
	// the end of the session was reported, and no event follows; guarded by the reports of the node
	told bool

	res    *resumeState  // nil unless the session can be resumed; fixed
	holder sessionHolder // fixed

	expiry certificateExpiry // of the latest certificate of the peer; owned by the reader
}

// errNoSession is the error of a nil *Session.
var errNoSession error = aborts.NeverSent(codec.ErrUnavailable.Withf("there is no session: SessionOf found none in this context, or the Connection has none"))

// sessionHolder is notified by the session that it has made.
type sessionHolder interface {
	// sessionChanged is called when a session has lost its Wire, and when its peer drains it.
	sessionChanged()

	// sessionEnded is called at the very end of s.
	sessionEnded(s *Session)
}

// sessionConfig is the part of a node's options for each session. It does not change.
type sessionConfig struct {
	log        *slog.Logger
	share      float64        // of lower priorities
	window     int            // bytes of the largest window
	windowless bool           // no windows
	windows    map[uint16]int // by function: outstanding calls
	private    bool           // keeps errors of handlers on this side
	resumeFor  time.Duration
	drain      time.Duration // for running calls, at shutdown; 0: no limit

	outliveCertificates bool

	hooks hooks
}

// sharedState is the common state of the sessions of a node. The node makes it once, and sessions
// have no other access to their node.
type sharedState struct {
	carriers  carrier.Settings // these are fixed
	records   repositoryRecords
	keepalive carrier.KeepaliveScheduler
	// call through the interceptors of the node, for calls of this side and of the peer; nil
	// without; fixed
	outward, inward Next

	call.Common // these lock themselves
	scheduler   dispatch.Scheduler
	suspended   resume.Sessions
	reports     callback.Reports
}

// resumeState is the state of a session that can be resumed.
type resumeState struct {
	agreed handshake.Settings // granted by the peer when the session began; these are fixed
	plan   *flow.Plan         // granted to the peer

	resume.Ticket // these lock themselves
	resume.Pacer
	suspended resume.Entry

	mu      sync.Mutex
	granted grantedLimits // by the last Grant; guarded by mu
}

// grantedLimits are the limits in force for a peer.
type grantedLimits struct{ inbound, outbound limits.Limits }

// certificateExpiry ends a session when a certificate expires. It does not lock itself.
type certificateExpiry struct {
	timer *time.Timer // nil before the first certificate
}

// start calls end when cert expires, and cancels an earlier start.
func (e *certificateExpiry) start(cert *x509.Certificate, end func(*Abort)) {
	e.stop()
	e.timer = time.AfterFunc(time.Until(cert.NotAfter), func() {
		end(codec.ErrUnauthorized.Withf("the certificate of %v expired at %v", cert.Subject, cert.NotAfter))
	})
}

func (e *certificateExpiry) stop() {
	if e.timer != nil {
		e.timer.Stop()
	}
}

// lifecycle is the view of a session for its carrier: see carrier.Session.
type lifecycle Session

// owner returns the owner of the session.
func (s *Session) owner() *quota.Owner { return s.calls.Dispatcher().Owner() }

// String returns the beginning of the ID, in the form used by logs.
func (s *Session) String() string {
	if s == nil {
		return "no session"
	}
	return s.id.short()
}

// ID returns the identifier of the session, the same on both sides, for logs.
func (s *Session) ID() SessionID {
	if s == nil {
		return SessionID{}
	}
	return s.id
}

// Peer returns a description of the other side.
func (s *Session) Peer() Peer {
	if s == nil {
		return Peer{}
	}
	w, secure := s.calls.Carrier.Wire()
	return Peer{ID: s.peerID, LocalAddr: w.LocalAddr(), RemoteAddr: w.RemoteAddr(), TLS: secure, Subject: s.owner().Subject}
}

// Done returns a channel that is closed when the session has ended.
func (s *Session) Done() <-chan struct{} {
	if s == nil {
		return wait.Over
	}
	return s.calls.Context().Done()
}

// Err returns nil until the session ends, and then the cause: ErrSessionClosed, or another *Abort.
func (s *Session) Err() error {
	if s == nil {
		return errNoSession
	}
	return context.Cause(s.calls.Context())
}

// LogValue implements slog.LogValuer.
func (s *Session) LogValue() slog.Value { return slog.StringValue(s.String()) }

// SessionID identifies a session on both sides. It is random, and proves nothing.
type SessionID [message.SessionSize]byte

// String returns the id in 32 hexadecimal digits; logs have the first 8.
func (id SessionID) String() string { return hex.EncodeToString(id[:]) }

// short returns the digits for logs.
func (id SessionID) short() string { return hex.EncodeToString(id[:4]) }

// SessionOf returns the session of a handler's context, on which the handler can call its caller
// back. Contexts derived from the handler's work as well. For other contexts SessionOf returns nil,
// on which calls fail with ErrUnavailable.
func SessionOf(ctx context.Context) *Session {
	if c := call.Of(ctx); c != nil {
		return sessionOf(c.Session())
	}
	return nil
}

// sessionOf returns the session of a call.
func sessionOf(s slog.LogValuer) *Session { return (*Session)(s.(*lifecycle)) }

// Session returns the session on which the call is served or made. On the calling side it is nil
// until a session is chosen, as in interceptors above a [Connection]; later it is the session of
// the last attempt.
func (c *Call) Session() *Session {
	x := c.side.Coder()
	if x == nil {
		return nil
	}
	return sessionOf(x.Session)
}

// Draining returns a channel that is closed when the session of a handler's call begins to drain:
// this side shuts it down ([Session.Shutdown], [Node.Shutdown]) or closes it, or the peer shuts it
// down. Running calls may finish then, and are cut after [Timeouts].Drain. A handler that would run
// forever, such as the handler of a stream of events, watches the channel and ends by itself:
//
//	for {
//		select {
//		case n := <-news:
//			…
//		case <-asterisque.Draining(ctx):
//			return nil, nil // the caller comes back, to another node
//		case <-ctx.Done():
//			return nil, ctx.Err()
//		}
//	}
//
// The channel stays open when the session is lost: that ends ctx. Contexts derived from a handler's
// context work as well. For any other context the channel is nil, and receiving from it blocks
// forever. Draining does not block, is safe for concurrent use, and costs memory only for sessions
// in which it is called.
func Draining(ctx context.Context) <-chan struct{} {
	if c := call.Of(ctx); c != nil {
		return sessionOf(c.Session()).calls.Draining()
	}
	return nil
}

// Outstanding is the use of the window of a function; see [WithMaxOutstanding].
type Outstanding struct {
	// maximum of outstanding calls; 0: no limit, and then the other fields are not counted
	Window  int
	Calls   int // made, and not answered
	Waiting int // calls that wait for the window; Stats.WaitPlace has what they hold
}

// Full reports whether another call would have to wait.
func (o Outstanding) Full() bool { return o.Window > 0 && o.Calls >= o.Window }

// Outstanding returns the use of the window of a function, so that a caller can check it before it
// prepares an expensive call.
func (s *Session) Outstanding(function uint16) Outstanding {
	if s == nil {
		return Outstanding{}
	}
	most, made, waiting := s.calls.Outstanding(function)
	return Outstanding{Window: most, Calls: made, Waiting: waiting}
}

// PipeInfo describes a running call.
type PipeInfo struct {
	Pipe     uint64 // the id, the same on both sides
	Function uint16 // number of the called function
	// name of the function in this side's service; empty for calls of this side
	Name     string
	Made     bool              // by this side
	Queued   bool              // a call of the peer that has not begun
	Priority priority.Priority // of all its messages
	Waiting  limits.Amount     // Blocks that have arrived and have not been taken
}

// Pipes lists the running calls of both sides, in the order of their ids, unary ones included. The
// caller owns the list. Its entries are not from the same instant. Pipes looks at all pipes, and is
// meant for reports and debugging.
func (s *Session) Pipes() []PipeInfo {
	if s == nil {
		return nil
	}
	infos := s.calls.Running()
	pipes := make([]PipeInfo, len(infos))
	for i, info := range infos {
		pipes[i] = PipeInfo(info)
	}
	return pipes
}

// SlowestPipe returns the pipe with the most bytes of Blocks that its application has not taken. It
// returns false if no pipe has any. SlowestPipe looks at all pipes, and is meant for reports and
// debugging.
func (s *Session) SlowestPipe() (slowest PipeInfo, ok bool) {
	for _, p := range s.Pipes() {
		if p.Waiting.Bytes > slowest.Waiting.Bytes {
			slowest, ok = p, true
		}
	}
	return slowest, ok
}

// Direction is a direction of a session's messages, seen from this side.
type Direction uint8

const (
	Inbound  Direction = iota // received, and not yet taken by the application
	Outbound                  // sent, and not yet given to the Wire
)

func (d Direction) String() string {
	if d == Inbound {
		return "inbound"
	}
	return "outbound"
}
