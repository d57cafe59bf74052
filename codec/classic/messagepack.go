package classic

import (
	"encoding/binary"
	"math"
)

// messagePackForm is the form of the MessagePackCodec, which packs each item separately: an integer
// in the fewest bytes, a text or a binary as raw bytes. It does not use the arrays and maps of
// MessagePack.
type messagePackForm struct{}

// Codes of MessagePack: the first byte of an item that is not a small integer.
const (
	packedRaw     = 0xa0 // to 0xbf: with the length
	packedBin8    = 0xc4 // also 16 and 32. Read, but never written
	packedBin32   = 0xc6
	packedFloat32 = 0xca
	packedFloat64 = 0xcb
	packedUint8   = 0xcc // also 16, 32 and 64
	packedUint16  = 0xcd
	packedUint32  = 0xce
	packedUint64  = 0xcf
	packedInt8    = 0xd0 // also 16, 32 and 64
	packedInt16   = 0xd1
	packedInt32   = 0xd2
	packedInt64   = 0xd3
	packedStr8    = 0xd9 // read, but never written: msgpack 0.6.11 fails on it
	packedRaw16   = 0xda
	packedRaw32   = 0xdb
	packedNegs    = 0xe0 // to 0xff: the integers -32 to -1
	smallest      = -32
	shortest      = 32 // bytes of a text with its length outside of the code
)

func (messagePackForm) appendInteger(dst []byte, n int64, _ int) []byte {
	order := binary.BigEndian
	switch {
	case n >= smallest && n <= math.MaxInt8:
		return append(dst, byte(n))
	case n > math.MaxUint32:
		return order.AppendUint64(append(dst, packedUint64), uint64(n))
	case n > math.MaxUint16:
		return order.AppendUint32(append(dst, packedUint32), uint32(n))
	case n > math.MaxUint8:
		return order.AppendUint16(append(dst, packedUint16), uint16(n))
	case n > 0:
		return append(dst, packedUint8, byte(n))
	case n >= math.MinInt8:
		return append(dst, packedInt8, byte(n))
	case n >= math.MinInt16:
		return order.AppendUint16(append(dst, packedInt16), uint16(n))
	case n >= math.MinInt32:
		return order.AppendUint32(append(dst, packedInt32), uint32(n))
	}
	return order.AppendUint64(append(dst, packedInt64), uint64(n))
}

// integer reads an integer of any length if its value fits width bytes, signed: a count of 40,000
// is the negative number that it is converted to.
func (messagePackForm) integer(data []byte, width int) (n int64, size int, err error) {
	switch {
	case len(data) == 0:
		return 0, 0, ErrIncomplete
	case data[0] <= math.MaxInt8 || data[0] >= packedNegs:
		return int64(int8(data[0])), 1, nil
	case data[0] < packedUint8 || data[0] > packedInt64:
		return 0, 0, malformed(0, "an integer was expected, and %02x came", data[0])
	}
	length := 1 << (data[0] & 3)
	u, size, err := packed(data, length)
	if err != nil {
		return 0, 0, err
	}
	n = int64(u)
	if data[0] >= packedInt8 {
		n = signed(u, length)
	} else if n < 0 {
		return 0, 0, malformed(0, "the integer %d does not fit 8 bytes", u)
	}
	if signed(uint64(n), width) != n {
		return 0, 0, malformed(0, "the integer %d does not fit %d bytes, signed", n, width)
	}
	return n, size, nil
}

// packed returns the number of length bytes behind a code.
func packed(data []byte, length int) (u uint64, size int, err error) {
	if len(data) < 1+length {
		return 0, 0, ErrIncomplete
	}
	return bigEndian(data[1 : 1+length]), 1 + length, nil
}

func (messagePackForm) appendFloat(dst []byte, bits uint64, width int) []byte {
	return appendBigEndian(append(dst, floatCode(width)), bits, width)
}

func floatCode(width int) byte {
	if width == 4 {
		return packedFloat32
	}
	return packedFloat64
}

func (messagePackForm) float(data []byte, width int) (bits uint64, size int, err error) {
	switch {
	case len(data) == 0:
		return 0, 0, ErrIncomplete
	case data[0] != floatCode(width):
		return 0, 0, malformed(0, "a float of %d bytes was expected, and %02x came", width, data[0])
	}
	return packed(data, width)
}

func (messagePackForm) appendLength(dst []byte, n int) []byte {
	switch {
	case n < shortest:
		return append(dst, packedRaw|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, packedRaw16), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, packedRaw32), uint32(n))
}

func (messagePackForm) length(data []byte) (n, size int, err error) {
	if len(data) == 0 {
		return 0, 0, ErrIncomplete
	}
	var first byte // of three codes, for 1, 2 and 4 bytes
	switch code := data[0]; {
	case code&^(shortest-1) == packedRaw:
		return int(code &^ packedRaw), 1, nil
	case code >= packedBin8 && code <= packedBin32:
		first = packedBin8
	case code >= packedStr8 && code <= packedRaw32:
		first = packedStr8
	default:
		return 0, 0, malformed(0, "a text or a binary was expected, and %02x came", code)
	}
	u, size, err := packed(data, 1<<(data[0]-first))
	return int(min(u, math.MaxInt32)), size, err // which no message has
}

// appendUUID appends two integers, the more significant half first.
func (f messagePackForm) appendUUID(dst []byte, u UUID) []byte {
	dst = f.appendInteger(dst, int64(bigEndian(u[:8])), 8)
	return f.appendInteger(dst, int64(bigEndian(u[8:])), 8)
}

func (f messagePackForm) uuid(data []byte) (u UUID, size int, err error) {
	high, n, err := f.integer(data, 8)
	if err != nil {
		return u, 0, err
	}
	low, m, err := f.integer(data[n:], 8)
	binary.BigEndian.PutUint64(u[:8], uint64(high))
	binary.BigEndian.PutUint64(u[8:], uint64(low))
	return u, n + m, err
}
