package asterisque

import (
	"context"
	"log/slog"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/internal/wait"
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
