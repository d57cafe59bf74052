package pipe

import "github.com/asterisque-go/asterisque/internal/buffer"

// Block is one message of a pipe's stream.
type Block struct {
	Payload []byte // owned by the receiver, until Release
	Skipped uint64 // number of Blocks dropped in transit since the previous Block

	mem *buffer.Buffer // memory of Payload, if that is pooled
}

// Release returns the memory of Payload for reuse. The call is optional, and saves an allocation
// for each large Block. After Release neither b nor a copy of b may be used.
func (b Block) Release() {
	if b.mem != nil {
		b.mem.Release()
	}
}
