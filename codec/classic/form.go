package classic

import "encoding/binary"

// form has all differences of the two codecs: the encoding of numbers, texts and uuids. The order
// of items is the same in both. A tag is one byte in either.
//
// The methods that read return the item at the beginning of data, and its size in bytes. Their
// error is ErrIncomplete if data ends too early, or a *FormatError.
type form interface {
	// appendInteger appends n, which fits width bytes, signed.
	appendInteger(dst []byte, n int64, width int) []byte
	integer(data []byte, width int) (n int64, size int, err error)

	// appendFloat appends a floating-point number of width bytes, 4 or 8.
	appendFloat(dst []byte, bits uint64, width int) []byte
	float(data []byte, width int) (bits uint64, size int, err error)

	// appendLength appends the length of a text or a binary of n bytes.
	appendLength(dst []byte, n int) []byte
	length(data []byte) (n, size int, err error)

	appendUUID(dst []byte, u UUID) []byte
	uuid(data []byte) (u UUID, size int, err error)
}

// appendCount appends an unsigned number of 16 bits, which the original converts to a signed one.
func appendCount(dst []byte, f form, n uint16) []byte {
	return f.appendInteger(dst, int64(int16(n)), 2)
}

// appendFields appends the number of a struct's fields, which the original converts to a signed
// one.
func appendFields(dst []byte, f form, n uint8) []byte { return f.appendInteger(dst, int64(int8(n)), 1) }

// appendRaw appends b behind its length, which must fit.
func appendRaw[B []byte | string](dst []byte, f form, b B) []byte {
	return append(f.appendLength(dst, len(b)), b...)
}

// bigEndian returns the number in b, of 1, 2, 4 or 8 bytes.
func bigEndian(b []byte) uint64 {
	switch order := binary.BigEndian; len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(order.Uint16(b))
	case 4:
		return uint64(order.Uint32(b))
	default:
		return order.Uint64(b)
	}
}

// appendBigEndian appends the last width bytes of u: 1, 2, 4 or 8.
func appendBigEndian(dst []byte, u uint64, width int) []byte {
	switch order := binary.BigEndian; width {
	case 1:
		return append(dst, byte(u))
	case 2:
		return order.AppendUint16(dst, uint16(u))
	case 4:
		return order.AppendUint32(dst, uint32(u))
	default:
		return order.AppendUint64(dst, u)
	}
}

// signed returns u as a signed integer of width bytes.
func signed(u uint64, width int) int64 {
	shift := 64 - 8*width
	return int64(u<<shift) >> shift
}
