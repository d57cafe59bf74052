package pipe

import (
	"time"

	"github.com/asterisque-go/asterisque/internal/buffer"
)

// Block is one message of a pipe's stream.
type Block struct {
	Payload []byte // belongs to who received it
	Skipped uint64 // how many Blocks between the one before and this one were dropped on the way

	expires time.Time      // zero: never
	mem     *buffer.Buffer // of Payload, if it is lent
}

// Release lets the memory of Payload be used again. It need not be called, but spares large Blocks an allocation each. After it neither b nor a copy of it
// may be used.
func (b Block) Release() {
	if b.mem != nil {
		b.mem.Release()
	}
}

// newBlock returns a Block with payload in mem or, if that is nil, with a copy of payload, in memory that is about as large as what is counted for it.
func newBlock(payload []byte, mem *buffer.Buffer, skipped uint64, expires time.Time) Block {
	b := Block{Payload: payload, Skipped: skipped, expires: expires, mem: mem}
	if mem != nil {
		return b
	}
	if buffer.Snug(len(payload)) {
		b.mem = buffer.Take(len(payload))
		b.Payload = b.mem.B[:copy(b.mem.B, payload)]
	} else {
		b.Payload = append(make([]byte, 0, len(payload)), payload...)
	}
	return b
}
