package asterisque

import (
	"context"
	"encoding/hex"
	"log/slog"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
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

// Call calls a function of the peer with params as they are, and blocks until its result arrives.
// The caller owns the result. Call does not retain params. The wait ends with the session and with
// ctx; the end of ctx also ends the handler's context. Every error is an *[Abort]; [Repeatable]
// reports whether repeating the call is safe.
//
// Before it is sent, a call waits for budget of the peer, and while the session is at its outbound
// soft limit. A nested call, made with a handler's context on the handler's session, does not wait
// for the peer: it fails with ErrOverloaded if the budget for nested calls is exhausted.
func (s *Session) Call(ctx context.Context, function uint16, params []byte, opts ...CallOption) ([]byte, error) {
	cfg := newCallConfig(opts)
	if plainOn(s, cfg) {
		return s.calls.Call(ctx, function, params, &cfg.Options)
	}
	return CallOn(ctx, s, function, params, opts...)
}

// Open calls a function of the peer and returns the pipe of the running call, which carries Blocks
// both ways until the call ends. Open does not retain params. life governs the whole call: when it
// ends, the call is aborted, and the handler's context ends. Open waits for budget: on this side
// for the Blocks of the callee, at the peer for one more call, and while the session is at its
// outbound soft limit. Every error is an *[Abort].
//
// A pipe occupies memory on both sides until it ends: by itself, by Abort or through life.
func (s *Session) Open(life context.Context, function uint16, params []byte, opts ...CallOption) (*pipe.Pipe, error) {
	cfg := newCallConfig(opts)
	if !plainOn(s, cfg) {
		return OpenOn(life, s, function, params, opts...)
	}
	p, a := s.calls.Open(life, function, params, &cfg.Options)
	if a != nil {
		return nil, a
	}
	return p, nil
}

// plainOn reports whether a call on s, which may be nil, with such options has no interceptors.
func plainOn(s *Session, cfg *callConfig) bool {
	return s != nil && s.shared.outward == nil && !cfg.Durable && cfg.around == nil
}

// Outstanding returns the use of the window of a function, so that a caller can check it before it
// prepares an expensive call.
func (s *Session) Outstanding(function uint16) Outstanding {
	if s == nil {
		return Outstanding{}
	}
	return Outstanding(s.calls.Outstanding(function))
}

// Invoke implements [Caller]: it makes the call c at the peer. See [Session.Call] and
// [Session.Open].
func (s *Session) Invoke(ctx context.Context, c *Call) error {
	m, a := makingOf(c)
	switch {
	case a != nil:
		return a
	case s == nil:
		return errNoSession
	case m.cfg.Durable && m.cfg.Key == nil && !m.call.blocks:
		return aborts.NeverSent(codec.ErrUnavailable.Withf("a durable call needs a Connection: see Node.Connect"))
	}
	m.makeOn(&s.calls)
	if outward := s.shared.outward; outward != nil {
		return outward(ctx, c)
	}
	return c.carryOut(ctx)
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
