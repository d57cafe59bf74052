package asterisque

import (
	"math"
	"time"

	"github.com/asterisque-go/asterisque/codec/message"
)

// agreement is the result of a handshake, without this side's own configuration.
type agreement struct {
	session SessionID
	about   Peer
	values  *valueCodec
	syncSettings

	resume   bool                     // both sides can resume the session
	secret   [message.SecretSize]byte // entitles to resume
	received uint64                   // counted frames of the peer, in answer to a resume
}

// syncSettings is the part of a side's Sync that holds for the whole session. A resume requires
// that all of it is unchanged.
type syncSettings struct {
	maxFrame int // bytes of the largest frame that the peer accepts
	// initial cost limit for the Blocks of a stream that this side opens, paid with its Open; 0:
	// the peer has no windows
	early    uint64
	overhead uint64 // cost of a message to the peer besides its content
	opens    uint64 // initial cost limit for calls; 0: no limit

	metadata bool // the peer supports metadata of calls

	// number of nested calls that the peer runs, and their cost limit; 0: no limit
	nestedCalls, nestedRoom int

	ping    time.Duration // the peer's ping interval; 0: it sends no Pings
	timeout time.Duration // silence after which the peer considers this side lost; 0: never
}

// syncSettingsOf returns the settings in a Sync of the peer.
func syncSettingsOf(s *message.Sync) syncSettings {
	return syncSettings{
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
