package smuxwire

import (
	"crypto/tls"
	"time"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// streamWire is the interface of the Wire that wire.FromConn returns for a net.Conn.
type streamWire interface {
	wire.Wire
	wire.BatchWriter
	wire.Buffered
	wire.Meter
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

// muxWire is the Wire over a stream.
type muxWire struct {
	streamWire
	stream *stream // fixed
}

// Place implements transport.Admitted.
func (w *muxWire) Place() transport.Place { return w.stream.placed() }

// secureWire is a Wire over TLS.
type secureWire struct {
	muxWire
	tls *tls.Conn // fixed
}

// ConnectionState implements wire.Secure.
func (s *secureWire) ConnectionState() tls.ConnectionState { return s.tls.ConnectionState() }
