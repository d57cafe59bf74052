package asterisque

import (
	"context"
	"log/slog"

	"github.com/asterisque-go/asterisque/codec"
)

// Session is the conversation of two nodes over a Wire. Both sides may call functions of the other,
// at the same time. All methods are safe for concurrent use. A nil *Session, as [SessionOf] and
// [Connection.Session] may return, is one that is over: what would use it fails with
// ErrUnavailable.
type Session struct {
	id     SessionID // these are fixed once the handshake is over
	shared *shared
	cfg    *sessionConfig

	peerID string // see Peer
	owner  *owner

	exchange // these lock themselves
	serving

	res    *resumption   // nil unless the session can be resumed; fixed
	holder sessionHolder // fixed

	expiry certificateExpiry // of what the peer has shown last; belongs to whoever reads
}

// errNoSession is what a nil *Session returns.
var errNoSession error = neverSent(codec.ErrUnavailable.Withf("there is no session: SessionOf found none in this context, or the Connection has none"))

// sessionHolder is who has made a session, and is told what becomes of it.
type sessionHolder interface {
	// sessionChanged is called when a session has lost its Wire, and when its peer drains it.
	sessionChanged()

	// sessionEnded is called at the very end of s.
	sessionEnded(s *Session)
}

// String returns the beginning of the ID, as logs have it.
func (s *Session) String() string {
	if s == nil {
		return "no session"
	}
	return s.id.short()
}

// ID returns what names the session on both sides, for logs.
func (s *Session) ID() SessionID {
	if s == nil {
		return SessionID{}
	}
	return s.id
}

// Peer returns what is known of the other side.
func (s *Session) Peer() Peer {
	if s == nil {
		return Peer{}
	}
	w, secure := s.carrier.Wire()
	return Peer{ID: s.peerID, LocalAddr: w.LocalAddr(), RemoteAddr: w.RemoteAddr(), TLS: secure, Subject: s.owner.subject}
}

// Done returns a channel that is closed when the session has ended.
func (s *Session) Done() <-chan struct{} {
	if s == nil {
		return closedChan
	}
	return s.ctx.Done()
}

// Err returns nil while the session is up, and then why it ended: ErrSessionClosed, or the *Abort
// of what went wrong.
func (s *Session) Err() error {
	if s == nil {
		return errNoSession
	}
	return context.Cause(s.ctx)
}

// LogValue implements slog.LogValuer.
func (s *Session) LogValue() slog.Value { return slog.StringValue(s.String()) }
