package asterisque

import (
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/outbox"
)

// What the limits and the statistics count is what is really held: content, and what it takes to keep it. These are the bytes for
// each kind besides its content, as the tests of held memory find them.
const (
	heldMessage   uint32 = uint32(outbox.Size) // a message that waits to be sent
	heldMeta             = 112                 // the meta of an Open that waits to be sent
	heldUnary            = 272                 // a call of the peer that waits for a worker: the object, its place in the line and in the table
	heldStream           = 448                 // the same for one with Blocks
	heldExtra            = 112                 // what few calls have besides
	heldRemember         = 208                 // a durable call that is remembered
	smallestAlloc        = 8
)

// heldOpen returns what an Open holds while it waits to be sent.
func heldOpen(m *outbox.Message) uint32 {
	n := int(heldMessage) + heldBytes(len(m.Payload))
	if m.Meta != nil {
		n += heldMeta + heldBytes(len(m.Meta.Trace)) + heldBytes(len(m.Meta.Key))
	}
	return uint32(n)
}

// heldClose returns what an answer holds while it waits to be sent.
func heldClose(result []byte, a *Abort) uint32 {
	n := int(heldMessage) + heldBytes(len(result))
	if a != nil {
		n += len(a.Message) + len(a.Detail)
	}
	return uint32(n)
}

// heldBlock returns what a Block holds while it waits to be sent.
func heldBlock(payload int, mem *buffer.Buffer) uint32 {
	if mem != nil {
		return heldMessage + uint32(len(mem.B))
	}
	return heldMessage + uint32(heldBytes(payload))
}

// heldParams returns what parameters hold that do not fit into the object of their call.
func heldParams(n int) int {
	if n == 0 {
		return 0
	}
	return max(n, smallestAlloc)
}

// heldBytes returns what a copy of so many bytes holds.
func heldBytes(n int) int {
	switch {
	case n == 0:
		return 0
	case buffer.Snug(n):
		return buffer.Size(n)
	}
	return max(n, smallestAlloc)
}
