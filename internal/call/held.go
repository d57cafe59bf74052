package call

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/outbox"
)

// Limits and statistics count the memory that is really held: content and overhead. These are the
// bytes of overhead for each kind, as measured by TestHeld_CountedIsHeld.
const (
	heldMessage uint32 = uint32(outbox.Size) // a message that waits to be sent
	// addition for an Open or a Close, which is mostly alone in the queue of its pipe
	heldAlone   = 112
	heldMeta    = 112 // the meta of an Open that waits to be sent
	heldUnary   = 208 // a call of the peer
	heldStream  = 368 // a stream of the peer
	heldRefusal = 96  // a rejected call without further state
	// a waiting call, in the queue and in the table, which is half full to full
	heldPlace  = 52
	heldExtra  = 112 // optional state of few calls
	heldTurn   = 72  // of a call with a key
	heldKeyed  = 80  // of a durable call
	heldParked = 108 // an answer that waits for room to be sent
)

// heldOpen returns the bytes that an Open holds while it waits to be sent.
func heldOpen(m *outbox.Message) uint32 {
	n := int(heldMessage) + heldAlone + buffer.Copied(len(m.Payload))
	if m.Meta != nil {
		n += heldMeta + buffer.Allocated(len(m.Meta.Trace)) + buffer.Allocated(len(m.Meta.Key)) + buffer.Allocated(len(m.Meta.Metadata))
	}
	return uint32(n)
}

// heldClose returns the bytes that an answer holds while it waits to be sent, including those of
// its call.
func heldClose(call int, result []byte, a *codec.Abort) uint32 {
	return uint32(int(heldMessage) + heldAlone + call + buffer.Copied(len(result)) + aborts.Held(a))
}

// heldBlock returns the bytes that a Block holds while it waits to be sent. alone reports that it
// is the only one in the queue of its pipe.
func heldBlock(payload int, mem *buffer.Buffer, alone bool) uint32 {
	n := int(heldMessage)
	if alone {
		n += heldAlone
	}
	if mem != nil {
		return uint32(n + mem.Held())
	}
	return uint32(n + buffer.Copied(payload))
}

// body returns the bytes that c holds while it is referenced, without its parameters.
func (r response) body() int {
	n := heldUnary
	if r.c.transport.pipe != nil {
		n = heldStream
	}
	if e := r.c.extras; e != nil {
		n += heldExtra + buffer.Allocated(len(e.trace)) + buffer.Allocated(len(e.key)) + e.heldMetadata()
		if e.key != nil {
			n += heldKeyed
		}
		if e.turn != nil {
			n += heldTurn + int(e.turn.Held)
		}
	}
	return n
}

// heldParams returns the bytes of c's parameters outside of its object.
func (c *Inbound) heldParams() int {
	switch {
	case c.extras != nil && c.extras.kept > 0:
		return c.extras.kept
	case c.transport.pipe == nil && int(c.work.Size) <= len(unaryCall{}.small):
		return 0
	}
	return buffer.Allocated(int(c.work.Size))
}

// held returns the bytes for which c counts while it waits: those that it holds, at most
// [flow.MostHeld].
func (c *Inbound) held() int {
	held, content := heldPlace+response{c}.body()+c.heldParams(), int(c.work.Size)
	if c.extras != nil {
		content += int(c.extras.strings)
	}
	return min(held, flow.MostHeld(content))
}
