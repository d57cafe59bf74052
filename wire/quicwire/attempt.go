package quicwire

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// handshakeAttempt is a connection to a listener, starting with its first packet.
type handshakeAttempt struct {
	from       net.Addr // these are fixed
	to         net.Addr
	place      transport.Place    // nil: there is no door
	handshakes *pendingHandshakes // of the listener
	failed     chan<- wire.Wire   // gets a failed handshake, if there is room

	begun atomic.Bool // a session has

	mu   sync.Mutex
	quic *quic.Conn // guarded by mu, as all below; nil before it can be closed
	lost bool       // the place is
	open bool       // the handshake is not complete
}

// attemptKey is the key of its attempt in the context of a connection.
type attemptKey struct{}

// reached is called when the connection can be closed. It may have ended by then, and is then not
// counted as a handshake any more.
func (a *handshakeAttempt) reached(c *quic.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.quic = c
	if a.open {
		a.handshakes.read(a.from)
	}
	if a.lost {
		go a.close(c) // ends by itself
	}
}

// complete is called when the handshake is.
func (a *handshakeAttempt) complete() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open {
		a.open = false
		a.handshakes.leave(a.from, a.quic == nil)
	}
}

// cut is called when the place is lost. Before quic-go has reported the connection, only the time
// limit of the handshake can close it.
func (a *handshakeAttempt) cut() {
	a.mu.Lock()
	a.lost = true
	c := a.quic
	a.mu.Unlock()
	if c != nil {
		a.close(c)
	}
}

func (a *handshakeAttempt) close(c *quic.Conn) {
	c.CloseWithError(codeUnused, "the connection carried no session for too long, or another connection needed its place")
}

// ended is called when the connection has ended.
func (a *handshakeAttempt) ended(err error) {
	a.complete()
	leave(a.place)
	if broken := (*quic.TransportError)(nil); a.begun.Load() || !errors.As(err, &broken) || broken.ErrorCode == quic.ConnectionRefused {
		return
	}
	select {
	case a.failed <- wire.FromConn(failedConn{fault(err), a.to, a.from}):
	default: // in a flood of failures, drop this one
	}
}

// enter gives a stream a place, if the connection has one.
func (a *handshakeAttempt) enter(s *streamConn) error {
	if a.place == nil {
		return nil
	}
	p, err := a.place.Enter(func() { s.Close() })
	if err == nil {
		s.setPlace(p)
	}
	return err
}
