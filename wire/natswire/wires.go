package natswire

import (
	"crypto/tls"
	"time"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// streamWire is the result of wire.FromConn for a net.Conn.
type streamWire interface {
	wire.Wire
	wire.BatchWriter
	wire.Buffered
	wire.Meter
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

// plainWire is a Wire that NATS servers can read.
type plainWire struct {
	streamWire
	conn *conn // fixed
}

// Place implements transport.Admitted.
func (w *plainWire) Place() transport.Place { return w.conn.Place() }

// secureWire is a Wire with TLS between its ends.
type secureWire struct {
	plainWire
	tls *tls.Conn // fixed
}

// ConnectionState implements wire.Secure.
func (w *secureWire) ConnectionState() tls.ConnectionState { return w.tls.ConnectionState() }

func newWire(c *conn) wire.Wire { return &plainWire{wire.FromConn(c).(streamWire), c} }

func newSecretWire(c *conn, t *tls.Conn) wire.Wire {
	return &secureWire{plainWire{wire.FromConn(t).(streamWire), c}, t}
}
