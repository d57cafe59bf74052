package asterisque

import (
	"time"

	"github.com/asterisque-go/asterisque/internal/buffer"
)

// rareParts are what few calls of the peer have.
type rareParts struct {
	turn     *turn          // nil if its function has no keys
	trace    []byte         // the peer's trace context
	key      []byte         // of a durable call
	metadata string         // what travels with the call, encoded
	durable  durableRole    // of a call that has a key
	params   *buffer.Buffer // what the parameters are in, if the handler only borrows them
	kept     int            // bytes that params held
	arrived  time.Duration  // when, by the node's clock; 0 if this call is not timed
	strings  uint32         // bytes of the strings of its meta, which its Open has cost
	returned uint32         // bytes of the parameters that its Open costs no more
}
