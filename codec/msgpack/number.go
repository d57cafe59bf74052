package msgpack

import (
	"math"
	"strconv"

	"github.com/tinylib/msgp/msgp"
)

// itemInteger is the value of an item: for a negative one the bits of an int64. The library reads
// an integer as one type, and allocates an error if that cannot hold it.
type itemInteger struct {
	bits     uint64
	negative bool
}

func integerOf(whole []byte) itemInteger {
	first, rest := whole[0], whole[1:]
	if len(rest) == 0 { // it is its own first byte
		return itemInteger{uint64(int8(first)), int8(first) < 0}
	}
	var bits uint64
	for _, b := range rest {
		bits = bits<<8 | uint64(b)
	}
	const signed = 0xd0
	if first < signed {
		return itemInteger{bits, false}
	}
	unused := 64 - 8*len(rest)
	n := int64(bits<<unused) >> unused
	return itemInteger{uint64(n), n < 0}
}

// signed returns it as an int64, if possible.
func (i itemInteger) signed() (n int64, ok bool) {
	return int64(i.bits), i.negative || i.bits <= math.MaxInt64
}

// unsigned returns it as a uint64, if possible.
func (i itemInteger) unsigned() (n uint64, ok bool) { return i.bits, !i.negative }

func (i itemInteger) String() string {
	if i.negative {
		return strconv.FormatInt(int64(i.bits), 10)
	}
	return strconv.FormatUint(i.bits, 10)
}

// free returns it as an int64, or as a uint64 if it is too large for that.
func (i itemInteger) free() any {
	if n, ok := i.signed(); ok {
		return n
	}
	return i.bits
}

// short is the size of a float of 32 bits.
const short = 5

// freeFloat returns a float in its own size.
func freeFloat(whole []byte) any {
	if len(whole) == short {
		f, _, _ := msgp.ReadFloat32Bytes(whole)
		return f
	}
	f, _, _ := msgp.ReadFloat64Bytes(whole)
	return f
}
