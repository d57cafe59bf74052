package call

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/outbox"
)

// heldAlone is the count of a message without content that waits to be sent.
const heldAlone = uint32(flow.LeastOverhead)

// heldOpen returns the count of an Open that waits to be sent. A stream has an End besides its
// call.
func heldOpen(m *outbox.Message) uint32 {
	n := len(m.Payload)
	if m.Meta != nil {
		n += len(m.Meta.Trace) + len(m.Meta.Key) + len(m.Meta.Metadata)
		if m.Meta.Stream {
			n += flow.LeastOverhead
		}
	}
	return uint32(flow.Held(n))
}

// heldClose returns the count of an answer that waits to be sent.
func heldClose(result []byte, a *codec.Abort) uint32 {
	return uint32(flow.Held(len(result) + aborts.Size(a)))
}

// heldParams returns the bytes of c's parameters outside of its object.
func (c *Inbound) heldParams() int {
	if c.transport.pipe == nil && int(c.work.Size) <= len(unaryCall{}.small) {
		return 0
	}
	return int(c.work.Size)
}

// held returns the count of c while it waits for a worker.
func (c *Inbound) held() int {
	content := int(c.work.Size)
	if e := c.extras; e != nil {
		content += len(e.trace) + len(e.key) + len(e.metadata)
	}
	return flow.Held(content)
}

// body implements responseWriter: a stream has an End besides its call.
func (r response) body() uint32 {
	if r.c.transport.pipe == nil {
		return 0
	}
	return flow.LeastOverhead
}
