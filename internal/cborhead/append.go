// Package cborhead writes and reads the CBOR items (RFC 8949) of frames: in the shortest form, of
// definite length, and with numbers of at most 2^53-1 in the fields of a frame.
package cborhead

import "encoding/binary"

// MaxNumber is the largest number that a frame may hold. Every language can represent it, including
// those with floating-point numbers only.
const MaxNumber = 1<<53 - 1

// Major types, as in the first byte of an item.
const (
	Unsigned = 0 << 5
	Negative = 1 << 5
	Bytes    = 2 << 5
	Text     = 3 << 5
	Array    = 4 << 5
	Map      = 5 << 5
	Tag      = 6 << 5
	Other    = 7 << 5 // simple values and floating point
)

// Simple values, which are items of one byte.
const (
	False = Other | 20
	True  = Other | 21
	Null  = Other | 22
)

// AppendHead appends the head of an item: its major type and, in the shortest form, its number.
func AppendHead(dst []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(dst, major|byte(n))
	case n < 1<<8:
		return append(dst, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, major|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(dst, major|26), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(dst, major|27), n)
	}
}

// HeadSize returns the number of bytes that AppendHead appends.
func HeadSize(n uint64) int {
	switch {
	case n < 24:
		return 1
	case n < 1<<8:
		return 2
	case n < 1<<16:
		return 3
	case n < 1<<32:
		return 5
	default:
		return 9
	}
}

// AppendUint appends an unsigned integer.
func AppendUint(dst []byte, n uint64) []byte {
	return AppendHead(dst, Unsigned, n)
}

// AppendNumber appends n, or MaxNumber if n is larger.
func AppendNumber(dst []byte, n uint64) []byte {
	return AppendUint(dst, min(n, MaxNumber))
}

// AppendInt appends an integer.
func AppendInt(dst []byte, n int64) []byte {
	if n < 0 {
		return AppendHead(dst, Negative, uint64(^n))
	}
	return AppendUint(dst, uint64(n))
}

// AppendBytes appends a byte string.
func AppendBytes(dst, b []byte) []byte {
	return append(AppendHead(dst, Bytes, uint64(len(b))), b...)
}

// AppendText appends a text string. s has to be valid UTF-8.
func AppendText(dst []byte, s string) []byte {
	return append(AppendHead(dst, Text, uint64(len(s))), s...)
}
