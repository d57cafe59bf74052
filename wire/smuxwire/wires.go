package smuxwire

import (
	"crypto/tls"

	"github.com/asterisque-go/asterisque/wire"
)

// streamWire is what wire.FromConn makes of a net.Conn.
type streamWire interface {
	wire.Wire
	wire.BatchWriter
	wire.Buffered
	wire.Deadliner
	wire.Meter
	wire.Receiver
}

// muxWire is the Wire over a stream.
type muxWire struct {
	streamWire
	stream *stream // fixed
}

// Place implements wire.Admitted.
func (w *muxWire) Place() wire.Place { return w.stream.placed() }

// secureWire is a Wire over TLS.
type secureWire struct {
	muxWire
	tls *tls.Conn // fixed
}

// ConnectionState implements wire.Secure.
func (s *secureWire) ConnectionState() tls.ConnectionState { return s.tls.ConnectionState() }
