package cluster

import (
	"crypto/tls"
	"net"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// natsStreamWire is the interface of wires through NATS.
type natsStreamWire interface {
	wire.Wire
	wire.BatchWriter
	wire.Buffered
	wire.Meter
	transport.Admitted
}

// peerWire is a Wire on which another node relays a peer. Its address is that of the peer, and not
// of the node.
type peerWire struct {
	natsStreamWire
	from    peerAddr // fixed, as private is
	private bool
}

// securePeerWire is the Wire of a peer that has TLS with the other node.
type securePeerWire struct {
	peerWire
	state tls.ConnectionState // fixed
}

// peerAddr is the address of a peer, as seen by another node.
type peerAddr struct{ network, addr string } // fixed

// Network implements net.Addr.
func (a peerAddr) Network() string { return a.network }

// String implements net.Addr.
func (a peerAddr) String() string { return a.addr }

// RemoteAddr implements wire.Wire.
func (w *peerWire) RemoteAddr() net.Addr { return w.from }

// Private implements wire.Private.
func (w *peerWire) Private() bool { return w.private }

// ConnectionState implements wire.Secure.
func (w *securePeerWire) ConnectionState() tls.ConnectionState { return w.state }

// newPeerWire returns the Wire of a peer that is relayed over w, a wire through NATS.
func newPeerWire(w wire.Wire, says relayHeader) *peerWire {
	return &peerWire{w.(natsStreamWire), peerAddr{says.Network, says.Addr}, wire.IsPrivate(w)}
}
