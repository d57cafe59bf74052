package call

import (
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/limits"
)

// body returns the bytes that c holds while it is referenced, without its parameters.
func (c *Inbound) body() int {
	n := heldUnary
	if c.pipe != nil {
		n = heldStream
	}
	if r := c.extras; r != nil {
		n += heldExtra + buffer.Allocated(len(r.trace)) + buffer.Allocated(len(r.key)) + c.heldMetadata()
		if r.key != nil {
			n += heldKeyed
		}
		if r.turn != nil {
			n += heldTurn + int(r.turn.Held)
		}
	}
	return n
}

// heldMetadata returns the bytes of c's encoded metadata.
func (c *Inbound) heldMetadata() int {
	if c.extras == nil {
		return 0
	}
	return buffer.Allocated(len(c.extras.metadata))
}

// heldParams returns the bytes of c's parameters outside of its object.
func (c *Inbound) heldParams() int {
	switch {
	case c.extras != nil && c.extras.kept > 0:
		return c.extras.kept
	case c.pipe == nil && int(c.work.Size) <= len(unaryCall{}.small):
		return 0
	}
	return buffer.Allocated(int(c.work.Size))
}

// held returns the bytes for which c counts while it waits: those that it holds, at most
// [limits.MostHeld].
func (c *Inbound) held() int {
	held, content := heldPlace+c.body()+c.heldParams(), int(c.work.Size)
	if c.extras != nil {
		content += int(c.extras.strings)
	}
	return min(held, limits.MostHeld(content))
}
