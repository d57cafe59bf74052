package pipe

import "github.com/asterisque-go/asterisque/internal/buffer"

// Block is one message of a pipe's stream.
type Block struct {
	Payload []byte // belongs to the receiver, until Release
	Skipped uint64 // how many Blocks between the one before and this one were dropped on the way

	mem *buffer.Buffer // of Payload, if it is lent
}

// Release lets the memory of Payload be used again. It need not be called, but spares large Blocks
// an allocation each. After it neither b nor a copy of it may be used.
func (b Block) Release() {
	if b.mem != nil {
		b.mem.Release()
	}
}
