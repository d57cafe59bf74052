package transport

import "net"

// Door admits connections before anything is spent on them: before TLS, HTTP, or whatever else a
// transport does until there is a Wire. A node is the Door of all that it serves. Its methods may
// be called concurrently, and do not wait.
type Door interface {
	// Enter gives a place to a connection from an address. A transport calls it as soon as it has
	// taken the first packet of the connection. The error says why there is no place; the transport
	// closes the connection at once.
	//
	// The Door calls lost, at most once and on a goroutine of its own, when the connection loses
	// its place: because there is no session in time, or because others need the place more. The
	// transport closes the connection then.
	Enter(from net.Addr, lost func()) (Place, error)
}

// Place is what a connection holds until it carries a session: one of a bounded number of places,
// for a bounded time. Its methods may be called concurrently, and do not wait. A node knows its own
// places, and those of other nodes: a Door that stands before a node hands them on as they are.
type Place interface {
	// Enter gives a place of its own to a Wire on this connection. It is for transports with many
	// wires on one connection, which call it as soon as the peer has opened a Wire, and also where
	// they have no room for that Wire. Otherwise it is as Enter of a [Door].
	//
	// While any Wire carries a session, the connection does not need its own place. It then loses
	// that place only if the peer goes on opening wires of which none becomes a session.
	Enter(lost func()) (Place, error)

	// Leave gives the place back when the connection, or the Wire, has been closed. Repeated calls
	// do nothing.
	Leave()
}

// Admitted is implemented by a Wire whose transport has asked a [Door]. It tells the node of the
// place, which the node leaves when it closes the Wire. Close of the Wire leaves the place as well,
// for users that are no node.
type Admitted interface {
	// Place returns the place of the Wire, or nil if nobody was asked.
	Place() Place
}

// Guarded is implemented by a wire.Listener whose connections cost something before Accept returns
// their wires. For other listeners it is enough that a node asks its Door when Accept has returned.
type Guarded interface {
	// Guard lets d admit the connections. It is called before the first Accept, and the Listener
	// takes no connection before that. Later calls do nothing. If d is nil, the Listener takes all
	// connections and asks nobody.
	Guard(d Door)
}
