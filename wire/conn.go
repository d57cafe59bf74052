package wire

import (
	"crypto/tls"
	"net"
	"time"
)

// connWire is the Wire over a net.Conn.
type connWire struct {
	*streamWire
	nc net.Conn
}

// SetReadDeadline is the method of net.Conn; see FromConn.
func (c *connWire) SetReadDeadline(t time.Time) error { return c.nc.SetReadDeadline(t) }

// SetWriteDeadline is the method of net.Conn; see FromConn.
func (c *connWire) SetWriteDeadline(t time.Time) error { return c.nc.SetWriteDeadline(t) }

// tlsWire is the Wire over TLS.
type tlsWire struct {
	connWire
	tls *tls.Conn
}

// ConnectionState implements Secure.
func (t *tlsWire) ConnectionState() tls.ConnectionState { return t.tls.ConnectionState() }

// farewell limits how long Close of a TLS connection blocks to send its close alert. Close blocks
// only if the peer does not read.
const farewell = 100 * time.Millisecond

// fastCloseTLS is a TLS connection with a Close that does not wait for five seconds.
type fastCloseTLS struct{ *tls.Conn }

// Close closes the connection. Its only possible error is that the close alert was not sent, which
// is ignored.
func (h fastCloseTLS) Close() error {
	hurry := time.AfterFunc(farewell, func() { h.NetConn().Close() })
	defer hurry.Stop()
	h.Conn.Close()
	return nil
}
