// Package outer is what an exchange and the nodes that connect to it say to each other, on the
// session that each node has with it. All else, the sessions that are relayed, is bytes to them.
package outer

import (
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// Largest is how many bytes a frame of a relayed session has at most: messages cross in parts of
// some 65 KiB, and what is before a session is smaller.
const Largest = 128 << 10

var (
	// Register is called by a node, and lasts as long as the node is registered. It sends its state
	// when that changes.
	Register = asterisque.Stream[Registration, State, Welcome, struct{}](1, "register")

	// Members is called by a node that is registered, with a name, and tells who has it.
	Members = asterisque.Stream[string, struct{}, Changes, struct{}](2, "members")

	// Dial is called by a node that is registered. After one Answer its Blocks are the bytes of a
	// Wire to another node.
	Dial = asterisque.Stream[Target, struct{}, Answer, struct{}](3, "dial")

	// Accept is called by the exchange, and is the other end of a Dial: after one Answer its Blocks
	// are the bytes of a Wire.
	Accept = asterisque.Stream[Visitor, struct{}, Answer, struct{}](4, "accept")
)

// State says what a node does.
type State string

const (
	Present  State = "present"  // it takes calls
	Draining State = "draining" // it goes, and finishes what it runs
)

// Member is a node as other ones see it.
type Member struct {
	Name     string            `cbor:"1,keyasint"`
	ID       string            `cbor:"2,keyasint"`
	Instance string            `cbor:"3,keyasint"` // another one each time that the program starts
	State    State             `cbor:"4,keyasint"`
	Since    time.Time         `cbor:"5,keyasint"`
	Identity string            `cbor:"6,keyasint,omitempty"` // that it has proved; empty: none
	Region   string            `cbor:"7,keyasint,omitempty"`
	Version  string            `cbor:"8,keyasint,omitempty"`
	Metadata map[string]string `cbor:"9,keyasint,omitempty"`
	Durable  bool              `cbor:"10,keyasint,omitempty"` // answers with others of its name
}

// Registration is what a node says of itself. Its identity is the one that it claims to have, or
// empty: then it has the one that it proves.
type Registration struct {
	Member Member `cbor:"1,keyasint"`
}

// Welcome says that a node is registered.
type Welcome struct {
	Exchange string `cbor:"1,keyasint"` // its id
	Identity string `cbor:"2,keyasint"` // that the node has proved
}

// Changes are how the nodes of a name have changed.
type Changes struct {
	There []Member `cbor:"1,keyasint"` // have come, or are different now
	Gone  []string `cbor:"2,keyasint"` // the ids of those that have gone
	All   bool     `cbor:"3,keyasint"` // all that are there have been told
}

// Target is the node that is dialled.
type Target struct {
	Name string `cbor:"1,keyasint"`
	ID   string `cbor:"2,keyasint"`
}

// Visitor is the node that dials. What it has not proved is empty, but for its name and its id,
// which it says itself.
type Visitor struct {
	Name     string `cbor:"1,keyasint"`
	ID       string `cbor:"2,keyasint"`
	Identity string `cbor:"3,keyasint"`
	Private  bool   `cbor:"4,keyasint"` // nobody can read what crosses between it and the exchange
}

// Answer says that the bytes follow.
type Answer struct {
	Private bool `cbor:"1,keyasint"` // as of Visitor, on the far side
}

// IsPrivate reports whether nobody else can read what crosses a session.
func IsPrivate(s *asterisque.Session) bool {
	p := s.Peer()
	return p.TLS != nil || transport.IsHere(p.RemoteAddr)
}
