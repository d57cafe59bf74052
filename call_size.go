package asterisque

import (
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/limits"
)

// body returns what c holds as long as anybody knows of it, parameters apart.
func (c *served) body() int {
	n := heldUnary
	if c.pipe != nil {
		n = heldStream
	}
	if r := c.rare; r != nil {
		n += heldExtra + buffer.Allocated(len(r.trace)) + buffer.Allocated(len(r.key)) + c.heldMetadata()
		if r.key != nil {
			n += heldKeyed
		}
		if r.turn != nil {
			n += heldTurn + int(r.turn.held)
		}
	}
	return n
}

// heldMetadata returns what the metadata of c holds, encoded.
func (c *served) heldMetadata() int {
	if c.rare == nil {
		return 0
	}
	return buffer.Allocated(len(c.rare.metadata))
}

// heldParams returns what the parameters of c hold that do not fit into its object.
func (c *served) heldParams() int {
	switch {
	case c.rare != nil && c.rare.kept > 0:
		return c.rare.kept
	case c.pipe == nil && int(c.work.size) <= len(unaryCall{}.small):
		return 0
	}
	return buffer.Allocated(int(c.work.size))
}

// held returns for how many bytes c counts while it waits: for what it holds, within
// [limits.MostHeld].
func (c *served) held() int {
	held, content := heldPlace+c.body()+c.heldParams(), int(c.work.size)
	if c.rare != nil {
		content += int(c.rare.strings)
	}
	return min(held, limits.MostHeld(content))
}
