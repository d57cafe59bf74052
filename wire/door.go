package wire

import "net"

// Door admits connections before anything is spent on them: before TLS, HTTP, or whatever else a
// transport does until there is a Wire. A node is the Door of all that it serves. Its methods may
// be called concurrently, and do not wait.
type Door interface {
	// Enter gives a connection from an address a place, as soon as its first packet is taken. lost
	// is called, at most once and on a goroutine of its own, when the place is lost: because there
	// is no session in time, or because others need it more. The connection is to be closed then.
	// The error says why there is no place; the connection is to be closed at once.
	Enter(from net.Addr, lost func()) (Place, error)
}

// Place is what a connection holds until it carries a session: one of a bounded number, for a
// bounded time. Its methods may be called concurrently, and do not wait. A node knows its own
// places, and those of other nodes: a Door before a node hands them on as they are.
type Place interface {
	// Enter gives a Wire on this connection a place of its own, for transports with many on one, as
	// soon as the peer has opened it. While any of them carries a session the connection's own
	// place is not needed, and is only lost if the peer goes on opening wires of which none becomes
	// a session. So it is called for each Wire, also for one that the transport has no room for.
	// Otherwise it is as for [Door].
	Enter(lost func()) (Place, error)

	// Leave gives the place back when the connection, or the Wire, has been closed. Repeated calls
	// do nothing.
	Leave()
}

// Admitted is implemented by a Wire whose transport has asked a [Door]. It tells the node of the
// place, which the node leaves when it closes the Wire. So does Close of the Wire, for whoever is
// no node.
type Admitted interface {
	// Place returns the place of the Wire, or nil if nobody was asked.
	Place() Place
}

// Guarded is implemented by a [Listener] whose connections cost something before Accept returns
// their wires. For others it is enough that a node asks its Door when Accept has returned.
type Guarded interface {
	// Guard lets d admit the connections. It is called before the first Accept, and no connection
	// is taken before that. Later calls do nothing. With nil they are taken, and nobody is asked.
	Guard(d Door)
}
