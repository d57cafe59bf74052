package piping

import (
	"time"

	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/flow"
)

// Block is one received message of a pipe. An application gets it as a pipe.Block.
type Block struct {
	Payload []byte         // owned by the receiver, until Release
	Skipped uint64         // number of Blocks dropped between the previous one and this one
	Expires time.Time      // zero: never
	Memory  *buffer.Buffer // of Payload, if it is pooled
}

// Release returns the memory of Payload for reuse. After it neither b nor a copy of b may be used.
func (b Block) Release() {
	if b.Memory != nil {
		b.Memory.Release()
	}
}

// Held returns the count of b while it waits in a pipe.
func (b *Block) Held() int { return flow.Held(len(b.Payload)) }

// NewBlock returns a received Block. skipped is the number of dropped Blocks before it. The payload
// is in mem, which is released with the Block, or is copied if mem is nil. The Block expires at
// expires, unless that is zero.
func NewBlock(payload []byte, mem *buffer.Buffer, skipped uint64, expires time.Time) Block {
	b := Block{Payload: payload, Skipped: skipped, Expires: expires, Memory: mem}
	if mem != nil {
		return b
	}
	if buffer.Snug(len(payload)) {
		b.Memory = buffer.Take(len(payload))
		b.Payload = b.Memory.B[:copy(b.Memory.B, payload)]
	} else {
		b.Payload = append([]byte(nil), payload...)
	}
	return b
}
