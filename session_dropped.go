package asterisque

import (
	"fmt"

	"github.com/asterisque-go/asterisque/internal/outbox"
)

// DropReason is the reason for which a message was dropped.
type DropReason uint8

const (
	DropSessionLost DropReason = iota // the session ended before it left
	// its time to live, or the time to live or deadline of its call, expired before it left
	DropExpired
	DropThinned    // the session was under pressure, and the loss rate allowed it
	DropNoFunction // the peer does not have the function that was called
	DropDraining   // the peer shuts the session down, and did not accept the call
	DropEnded      // the call ended before it left, for any other reason
)

// dropReasonOf maps the reasons of the outbox.
var dropReasonOf = [...]DropReason{
	outbox.Closed:     DropSessionLost,
	outbox.Expired:    DropExpired,
	outbox.Thinned:    DropThinned,
	outbox.NoFunction: DropNoFunction,
	outbox.Draining:   DropDraining,
	outbox.Ended:      DropEnded,
}

var dropReasons = [...]string{
	DropSessionLost: "session lost",
	DropExpired:     "expired",
	DropThinned:     "thinned",
	DropNoFunction:  "no such function",
	DropDraining:    "peer draining",
	DropEnded:       "call ended",
}

func (r DropReason) String() string {
	if int(r) < len(dropReasons) {
		return dropReasons[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Drop describes a message that this side sent and that was dropped.
type Drop struct {
	Open   bool // a call, and not a Block
	Reason DropReason
	Marker any // value of pipe.WithMarker for the Block; nil without
}
