package piping

import (
	"math"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/limits"
)

// MaxWindow is the largest window, in bytes.
const MaxWindow = math.MaxUint32

// Unlimited is the limit of a direction whose receiver has no windows.
const Unlimited = math.MaxUint64

// Terms are what the two sides of a session have agreed on for their Blocks. The pipes of a session
// share them.
type Terms struct {
	Room     *limits.Room // for what arrives; nil: this side has no windows
	Overhead uint64       // what a Block that arrives costs besides its payload
	Early    uint64       // what is never kept from the peer: see [limits.Plan].Window
	Usual    uint64       // window, to which they grow whatever the path holds
	Most     uint64       // window, to which they grow if the path holds as much

	PeerOverhead uint64 // what a Block that is sent costs besides its payload
	PeerEarly    uint64 // up to which cost the peer's credit comes without being asked for

	Ledger Ledger

	Left    atomic.Int32  // pipes that are over, and whose Blocks nobody has taken yet
	Waiting atomic.Int32  // senders that wait until the peer has taken some Blocks
	owed    atomic.Uint64 // cost for which the pipes have granted credit since the path is known
	Holds   atomic.Uint64 // bytes that the path from the peer holds, as the peer says; 0: not known
}

// follows returns the window that the path has use for: twice what it holds. The peer says what
// that is: it may lie, and gets no more than there is room for.
func (t *Terms) follows() uint64 { return min(2*min(t.Holds.Load(), t.Most), t.Most) }

// largest returns the window to which those grow that are used up.
func (t *Terms) largest() uint64 { return max(t.Usual, t.follows()) }

// cost returns what a Block that arrives counts against the window of its receiver.
func (t *Terms) cost(payload int) uint64 { return uint64(payload) + t.Overhead }

// peerCost returns what a Block that is sent counts against the peer's window.
func (t *Terms) peerCost(payload int) uint64 { return uint64(payload) + t.PeerOverhead }

// Ledger is the session, where the pipes account for what they hold. Its methods are called without
// a lock.
type Ledger interface {
	// Taken says that the application has taken, or will never take, messages that held so many
	// bytes in all.
	Taken(messages, bytes int)

	// Shelter sets bytes aside for a Block that has been asked for, and for which no receiver waits
	// any more. It reports false if there is no room for that. A negative number gives bytes back.
	Shelter(bytes int) bool
}
