package piping

import (
	"time"
	"unsafe"

	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/limits"
)

// Block is one message of a pipe's stream that has arrived. An application gets it as a pipe.Block.
type Block struct {
	Payload []byte         // belongs to the receiver, until Release
	Skipped uint64         // how many Blocks between the one before and this one were dropped
	Expires time.Time      // zero: never
	Memory  *buffer.Buffer // of Payload, if it is lent
}

// Release lets the memory of Payload be used again. After it neither b nor a copy of it may be
// used.
func (b Block) Release() {
	if b.Memory != nil {
		b.Memory.Release()
	}
}

// Hold is the number of bytes that a Block which waits in a pipe holds besides its payload.
const Hold = int(unsafe.Sizeof(Block{})) + 6

// Held returns for how many bytes b counts while it waits in a pipe: for what it holds, within
// [limits.MostHeld].
func (b *Block) Held() int {
	held := Hold + cap(b.Payload)
	if b.Memory != nil {
		held = Hold + b.Memory.Held()
	}
	return min(held, limits.MostHeld(len(b.Payload)))
}

// NewBlock returns a Block that has arrived after skipped others that did not: with payload in mem,
// which is released with it, or with a copy of payload if mem is nil. Unless expires is zero, it is
// not worth taking from then on.
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
