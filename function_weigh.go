package asterisque

import (
	"math/bits"

	"github.com/asterisque-go/asterisque/codec"
)

// weigh finds out what the parameters of c become, once for all who decode them as what the handler
// takes.
func (c *served) weigh() error {
	h := c.handler
	if h.params == nil || len(c.params) <= h.free {
		return nil
	}
	return c.examine("codec", (*served).turnBack, func() error {
		n, err := c.x.weigh(c.params, h.params)
		if err != nil {
			return codecError(codec.BadParams, c.handler.number, h.name, "parameters", err)
		}
		c.work.becomes = roughly(n)
		return nil
	})
}

// rough is a number of bytes, rounded up by at most a thousandth: eleven bits, and how far they are
// shifted. It is for where there are two bytes left.
type rough uint16

const roughBits = 11

func roughly(n int) rough {
	n = min(max(n, 0), 1<<30)
	shift := max(0, bits.Len(uint(n))-roughBits)
	top := (n + 1<<shift - 1) >> shift
	if top == 1<<roughBits {
		top, shift = top/2, shift+1
	}
	return rough(shift<<roughBits | top)
}

func (r rough) bytes() int { return int(r&(1<<roughBits-1)) << (r >> roughBits) }
