package piping

import (
	"math"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/internal/flow"
)

// MaxWindow is the largest window, in bytes.
const MaxWindow = math.MaxUint32

// Unlimited is the limit of a direction without a window.
const Unlimited = math.MaxUint64

// Terms are the parameters for Blocks that the two sides of a session have agreed on. The pipes of
// a session share them.
type Terms struct {
	Budget   *flow.Budget // for received Blocks; nil: this side has no windows
	Overhead uint64       // cost of a received Block besides its payload
	Early    uint32       // credit that the peer always gets: see [flow.Plan].Window
	Usual    uint32       // size to which windows grow on any path
	Most     uint32       // size to which windows grow if the path has the capacity
	Waiting  atomic.Int32 // senders that wait for the peer to take Blocks

	PeerOverhead uint64 // cost of a sent Block besides its payload
	PeerEarly    uint64 // credit that the peer always grants without being asked

	Ledger Ledger

	left atomic.Pointer[leftPipes] // nil until there is one
	// cost of the credit granted since the capacity of the path is known
	owed  atomic.Uint64
	Holds atomic.Uint64 // capacity of the path from the peer, by its announcement; 0: unknown
}

// follows returns the window that the path can use: twice its capacity. The peer announces the
// capacity. A false announcement gains no more than the available room.
func (t *Terms) follows() uint64 { return min(2*min(t.Holds.Load(), MaxWindow), uint64(t.Most)) }

// largest returns the size to which used up windows grow.
func (t *Terms) largest() uint64 { return max(uint64(t.Usual), t.follows()) }

// cost returns the cost of a received Block in the window of its receiver.
func (t *Terms) cost(payload int) uint64 { return uint64(payload) + t.Overhead }

// peerCost returns the cost of a sent Block in the window of the peer.
func (t *Terms) peerCost(payload int) uint64 { return uint64(payload) + t.PeerOverhead }

// Ledger is the session, in which pipes account for their memory. Its methods are called without a
// lock.
type Ledger interface {
	// Taken records that the application has taken, or will never take, messages of the given bytes
	// in all.
	Taken(messages, bytes int)

	// Reserve reserves room for running calls for a Block that has credit, and for which no
	// receiver waits any more. It returns false if there is none. A negative number releases bytes.
	Reserve(bytes int) bool
}
