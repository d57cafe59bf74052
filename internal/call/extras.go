package call

import (
	"time"

	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/idempotency"
)

// extras is the optional state of few calls of the peer.
type extras struct {
	turn     *dispatch.Turn   // nil if its function has no keys
	trace    []byte           // the peer's trace context
	key      []byte           // of a durable call
	metadata string           // of the call, encoded
	durable  idempotency.Role // of a call that has a key
	params   *buffer.Buffer   // memory of the parameters, if the handler only borrows them
	kept     int              // bytes held by params
	arrived  time.Duration    // by the node's clock; 0 if this call is not timed

	// These count in the cost of the Open: bytes of the strings of its meta, and bytes of its
	// parameters that count no longer.
	strings, returned uint32
}
