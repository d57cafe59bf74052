package agent

import (
	"net"
	"sync"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/tunnel"
	"github.com/asterisque-go/asterisque/wire"
)

// Addr is the address of a node at an exchange: the RemoteAddr of [asterisque.Peer] for sessions
// through an exchange.
type Addr struct {
	Name, ID string // as the node has registered

	// Identity is the identity that the node has proved to the exchange; empty: none. It is known
	// on the side that was dialled, so that Access.Accept of the node can use it.
	Identity string

	wire *relayedWire // the Wire to that address; nil: the address of this side
}

// Network returns "exchange".
func (Addr) Network() string { return "exchange" }

// String returns the name and the id: "orders/4711".
func (a Addr) String() string { return a.Name + "/" + a.ID }

// relayedWire is a Wire through an exchange.
type relayedWire struct {
	streamWire
	private bool
	dialled bool                // by this side
	through *asterisque.Session // with the exchange

	once  sync.Once
	ended func() // called by the first Close
}

// streamWire is the type of the Wire that [wire.FromConn] returns for a connection.
type streamWire interface {
	wire.Wire
	wire.BatchWriter
	wire.Buffered
	wire.Meter
}

// newRelayed returns the Wire over a connection with a node. ended is called when it is closed.
func newRelayed(c *tunnel.Conn, self, peer Addr, private bool, ended func()) *relayedWire {
	r := &relayedWire{private: private, through: c.Session(), ended: ended}
	peer.wire = r
	r.streamWire = wire.FromConn(namedConn{c, self, peer}).(streamWire) // as documented there
	return r
}

// Private implements wire.Private.
func (r *relayedWire) Private() bool { return r.private }

// Close implements wire.Wire.
func (r *relayedWire) Close() error {
	err := r.streamWire.Close()
	r.once.Do(r.ended)
	return err
}

// namedConn is a connection with the addresses of nodes.
type namedConn struct {
	*tunnel.Conn
	self, peer Addr
}

// LocalAddr implements net.Conn.
func (n namedConn) LocalAddr() net.Addr { return n.self }

// RemoteAddr implements net.Conn.
func (n namedConn) RemoteAddr() net.Addr { return n.peer }
