package piping

import (
	"time"

	"github.com/asterisque-go/asterisque/internal/buffer"
)

// Outgoing is a Block, or a piece of one, to send, with the properties set by the options of Send.
type Outgoing struct {
	Payload []byte
	Expires time.Time // when it becomes worthless; zero: never
	Loss    uint8     // loss rate, 0..127
	Marker  any       // for the report of a drop

	// Whole is the size of the Block of which Payload is the piece that begins at Offset; 0:
	// Payload is the whole Block
	Whole, Offset int

	// Memory contains Payload, if it is handed over with the Block: then it is released after the
	// Block was sent or dropped. After an error the caller keeps it.
	Memory *buffer.Buffer
}
