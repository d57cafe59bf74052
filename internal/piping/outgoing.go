package piping

import (
	"time"

	"github.com/asterisque-go/asterisque/internal/buffer"
)

// Outgoing is a Block to be sent, with what the options of Send say of it.
type Outgoing struct {
	Payload []byte
	Expires time.Time // from then on it is not worth delivering; zero: never
	Loss    uint8     // loss rate, 0..127
	Marker  any       // for the report of a drop

	// Memory is what Payload is in, if that is given away with it: it is released by whoever has
	// sent or dropped it. It stays with the caller if there is an error.
	Memory *buffer.Buffer
}
