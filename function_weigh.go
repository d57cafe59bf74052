package asterisque

import (
	"fmt"
	"math"
	"math/bits"
	"reflect"

	"github.com/asterisque-go/asterisque/codec"
)

// expansion bounds what values become when they are decoded: so many bytes for each of theirs, and
// so many more.
type expansion struct {
	times, plus int
}

// of returns the bound for n bytes.
func (e expansion) of(n int) int {
	if n > 0 && e.times > (math.MaxInt-e.plus)/n {
		return math.MaxInt
	}
	return e.times*n + e.plus
}

// weigh returns what data becomes when it is decoded as a t, besides that t itself, or why it is
// not decoded. With a codec that cannot tell it is 0.
func (s *Session) weigh(data []byte, t reflect.Type) (n int, err error) {
	w, ok := s.values.(codec.Weigher)
	if !ok {
		return 0, nil
	}
	most := s.cfg.expansion.of(len(data))
	if n = w.Weigh(data, t, most); n > most {
		return 0, &codec.ValueError{Reason: fmt.Sprintf("%d bytes would become %d or more, beyond the limit of %d here: see WithExpansion", len(data), n, most)}
	}
	return n, nil
}

// weigh finds out what the parameters of c become, once for all who decode them as what the handler
// takes.
func (c *incoming) weigh() error {
	h := c.handler
	if h.params == nil || len(c.params) <= h.free {
		return nil
	}
	return c.examine("codec", (*Session).turnBack, func() error {
		n, err := c.s.weigh(c.params, h.params)
		if err != nil {
			return codecError(codec.BadParams, c.function, h.name, "parameters", err)
		}
		c.becomes = roughly(n)
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
