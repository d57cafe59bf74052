package asterisque

import (
	"math"
	"time"

	"github.com/asterisque-go/asterisque/codec/message"
)

// agreement is what two sides found in a handshake, as far as it is not this side's own
// configuration.
type agreement struct {
	session SessionID
	about   Peer
	values  *valueCodec
	promises

	resume   bool                     // both sides can resume the session
	secret   [message.SecretSize]byte // that entitles to it
	received uint64                   // in answer to a resume: how many counted frames the peer has
}

// promises is what a side has said in its Sync that holds for the whole session.
type promises struct {
	maxFrame int // bytes of the largest frame that the peer accepts
	// what the Blocks of a stream that this side opens may cost at first, as it is paid with its
	// Open; 0: the peer has no windows
	early    uint64
	overhead uint64 // what a message to the peer costs besides its content
	opens    uint64 // what calls may cost that are sent at first; 0: any number

	metadata bool // the peer knows that of calls

	// how many calls within calls the peer runs, and what they may cost; 0: any number
	nestedCalls, nestedRoom int

	ping    time.Duration // the peer's ping interval; 0: it sends none
	timeout time.Duration // after which silence the peer gives this side up; 0: never
}

// promisesOf returns what the peer has said in its Sync for the whole session.
func promisesOf(s *message.Sync) promises {
	return promises{
		maxFrame: int(min(s.MaxMessage, 1<<31-1)),
		early:    s.Window,
		overhead: max(s.Overhead, message.MinOverhead),
		opens:    s.Opens,
		metadata: s.Features&message.FeatureMetadata != 0,

		nestedCalls: int(min(s.NestedCalls, math.MaxInt32)),
		nestedRoom:  int(min(s.NestedRoom, math.MaxInt32)),

		ping:    s.Ping,
		timeout: s.Timeout,
	}
}
