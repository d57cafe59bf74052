package transport

import "net"

// Door admits connections before a transport spends resources on them: before TLS, HTTP, or any
// other step that precedes the Wire. A node is the Door of all listeners that it serves. Its
// methods may be called concurrently, and do not block.
type Door interface {
	// Enter gives a place to a connection from an address. A transport calls it as soon as it has
	// taken the first packet of the connection. The error is the reason for a rejection; the
	// transport closes the connection at once.
	//
	// The Door calls lost, at most once and on its own goroutine, when the connection loses its
	// place: because it has no session in time, or because another connection takes the place. The
	// transport then closes the connection.
	Enter(from net.Addr, lost func()) (Place, error)
}

// Place is held by a connection until it carries a session: one of a bounded number of places, for
// a bounded time. Its methods may be called concurrently, and do not block. A node recognizes its
// own places and those of other nodes: a Door in front of a node forwards them unchanged.
type Place interface {
	// Enter gives a Wire on this connection its own place. It is for transports with many wires on
	// one connection, which call it as soon as the peer has opened a Wire, and also when the Wire
	// exceeds their limit. Otherwise it is as Enter of a [Door].
	//
	// While any Wire carries a session, the connection does not need its own place. It then loses
	// that place only if the peer continues to open wires without a session.
	Enter(lost func()) (Place, error)

	// Leave releases the place when the connection, or the Wire, has been closed. Repeated calls do
	// nothing.
	Leave()
}

// Admitted is implemented by a Wire if its transport has asked a [Door]. It gives the node access
// to the place, which the node leaves when it closes the Wire. Close of the Wire leaves the place
// as well, for users other than nodes.
type Admitted interface {
	// Place returns the place of the Wire, or nil if there was no door.
	Place() Place
}

// Guarded is implemented by a wire.Listener that spends resources on a connection before Accept
// returns its Wire. For any other listener it suffices that a node asks its Door when Accept has
// returned.
type Guarded interface {
	// Guard sets the Door that admits the connections. It is called before the first Accept, and
	// the Listener takes no connection before that. Later calls do nothing. If d is nil, the
	// Listener admits all connections.
	Guard(d Door)
}
