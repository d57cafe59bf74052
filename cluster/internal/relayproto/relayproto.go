// Package relayproto is the protocol between an exchange and the nodes that connect to it, on the
// session of each node with the exchange. Relayed sessions are opaque bytes to it.
package relayproto

import (
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// Largest is the maximum size of a frame of a relayed session: messages cross in parts of some 65
// KiB, and the frames before a session are smaller.
const Largest = 128 << 10

var (
	// Register is called by a node, and lasts as long as the node is registered. The node sends
	// each change of its state.
	Register = asterisque.Stream[Registration, State, Welcome, struct{}](1, "register")

	// Members is called by a registered node with a name, and sends the nodes of that name.
	Members = asterisque.Stream[string, struct{}, Changes, struct{}](2, "members")

	// Dial is called by a registered node. After one Answer its Blocks are the bytes of a Wire to
	// another node.
	Dial = asterisque.Stream[Target, struct{}, Answer, struct{}](3, "dial")

	// Accept is called by the exchange, and is the other end of a Dial: after one Answer its Blocks
	// are the bytes of a Wire.
	Accept = asterisque.Stream[Visitor, struct{}, Answer, struct{}](4, "accept")
)

// State is the state of a node.
type State string

const (
	Present  State = "present"  // it takes calls
	Draining State = "draining" // it shuts down, and completes its running calls
)

// Member is a node, as seen by other nodes.
type Member struct {
	Name     string            `cbor:"1,keyasint"`
	ID       string            `cbor:"2,keyasint"`
	Instance string            `cbor:"3,keyasint"` // differs for each start of the program
	State    State             `cbor:"4,keyasint"`
	Since    time.Time         `cbor:"5,keyasint"`
	Identity string            `cbor:"6,keyasint,omitempty"` // proved; empty: none
	Region   string            `cbor:"7,keyasint,omitempty"`
	Version  string            `cbor:"8,keyasint,omitempty"`
	Metadata map[string]string `cbor:"9,keyasint,omitempty"`
	Durable  bool              `cbor:"10,keyasint,omitempty"` // shares answers within its name
}

// Registration is the information of a node about itself. Its identity is the one that it claims,
// or empty: then it has the one that it proves.
type Registration struct {
	Member Member `cbor:"1,keyasint"`
}

// Welcome confirms a registration.
type Welcome struct {
	Exchange string `cbor:"1,keyasint"` // its id
	Identity string `cbor:"2,keyasint"` // proved by the node
}

// Changes are changes of the nodes of a name.
type Changes struct {
	There []Member `cbor:"1,keyasint"` // new or changed nodes
	Gone  []string `cbor:"2,keyasint"` // ids of removed nodes
	All   bool     `cbor:"3,keyasint"` // all present nodes have been sent
}

// Target is the dialled node.
type Target struct {
	Name string `cbor:"1,keyasint"`
	ID   string `cbor:"2,keyasint"`
}

// Visitor is the dialling node. Its identity is empty if it has not proved any. Its name and its id
// are its own information.
type Visitor struct {
	Name     string `cbor:"1,keyasint"`
	ID       string `cbor:"2,keyasint"`
	Identity string `cbor:"3,keyasint"`
	Private  bool   `cbor:"4,keyasint"` // its connection with the exchange is private
}

// Answer announces that the bytes follow.
type Answer struct {
	Private bool `cbor:"1,keyasint"` // like that of Visitor, on the far side
}

// IsPrivate reports whether no third party can read the traffic of a session.
func IsPrivate(s *asterisque.Session) bool {
	p := s.Peer()
	return p.TLS != nil || transport.IsHere(p.RemoteAddr)
}
