package asterisque

import "math/bits"

// size16 is a number of bytes, rounded up by at most a thousandth: eleven bits, and their work
// source. It takes two bytes.
type size16 uint16

const roughBits = 11

func roughly(n int) size16 {
	n = min(max(n, 0), 1<<30)
	shift := max(0, bits.Len(uint(n))-roughBits)
	top := (n + 1<<shift - 1) >> shift
	if top == 1<<roughBits {
		top, shift = top/2, shift+1
	}
	return size16(shift<<roughBits | top)
}

func (r size16) bytes() int { return int(r&(1<<roughBits-1)) << (r >> roughBits) }
