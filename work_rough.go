package asterisque

import "math/bits"

// rough is a number of bytes, rounded up by at most a thousandth: eleven bits, and their shift. It
// takes two bytes.
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
