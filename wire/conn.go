package wire

import (
	"crypto/tls"
	"net"
	"time"
)

// Deadliner is implemented by a Wire whose waits can be limited in time. Its methods may be called
// from any goroutine, also during a wait.
type Deadliner interface {
	// SetReadDeadline lets ReadFrame fail after t with an error that wraps
	// [os.ErrDeadlineExceeded]. Nothing is lost by that: with a later deadline, or with the zero
	// time for none, ReadFrame goes on where it was; only a TLS handshake cannot go on.
	SetReadDeadline(t time.Time) error

	// SetWriteDeadline lets writing fail after t in the same way. Part of the frames may have been
	// sent, so the Wire cannot be written after that.
	SetWriteDeadline(t time.Time) error
}

// Secure is implemented by a Wire over TLS.
type Secure interface {
	// ConnectionState says how the connection is protected and who the peer is. On the accepting
	// side it says nothing before the first ReadFrame or write has returned: these do the TLS
	// handshake.
	ConnectionState() tls.ConnectionState
}

// connWire is the Wire over a net.Conn.
type connWire struct {
	*streamWire
	nc net.Conn
}

// SetReadDeadline implements Deadliner.
func (c *connWire) SetReadDeadline(t time.Time) error { return c.nc.SetReadDeadline(t) }

// SetWriteDeadline implements Deadliner.
func (c *connWire) SetWriteDeadline(t time.Time) error { return c.nc.SetWriteDeadline(t) }

// tlsWire is the Wire over TLS.
type tlsWire struct {
	connWire
	tls *tls.Conn
}

// ConnectionState implements Secure.
func (t *tlsWire) ConnectionState() tls.ConnectionState { return t.tls.ConnectionState() }

// farewell limits how long Close of a TLS connection waits to tell the peer, which it does only
// where the peer does not read.
const farewell = 100 * time.Millisecond

// hastyTLS is a TLS connection with a Close that does not wait for five seconds.
type hastyTLS struct{ *tls.Conn }

// Close closes the connection. An error could only say that the peer has not been told.
func (h hastyTLS) Close() error {
	hurry := time.AfterFunc(farewell, func() { h.NetConn().Close() })
	defer hurry.Stop()
	h.Conn.Close()
	return nil
}
