package codec

import "encoding/binary"

// Major types of CBOR, as they stand in the first byte of an item.
const (
	unsigned   = 0 << 5
	negative   = 1 << 5
	byteString = 2 << 5
	textString = 3 << 5
	array      = 4 << 5
	mapping    = 5 << 5
	tag        = 6 << 5
	other      = 7 << 5 // simple values and floating point

	no   = other | 20
	yes  = other | 21
	null = other | 22
)

// appendHead appends the head of an item: its major type and, in the shortest form, its number.
func appendHead(dst []byte, major byte, n uint64) []byte {
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

func appendUint(dst []byte, n uint64) []byte {
	return appendHead(dst, unsigned, n)
}

// appendNumber appends n, or the largest number that a frame may hold.
func appendNumber(dst []byte, n uint64) []byte {
	return appendUint(dst, min(n, MaxPipe))
}

func appendInt(dst []byte, n int64) []byte {
	if n < 0 {
		return appendHead(dst, negative, uint64(^n))
	}
	return appendUint(dst, uint64(n))
}

func appendBytes(dst, b []byte) []byte {
	return append(appendHead(dst, byteString, uint64(len(b))), b...)
}

func appendText(dst []byte, s string) []byte {
	return append(appendHead(dst, textString, uint64(len(s))), s...)
}

// A map of known fields is written in one pass: its head is one byte that starts at no entries, and
// each entry that is not zero counts itself there. at is where in dst that head is; there are never
// more than 23 entries.

func appendEntry(dst []byte, at int, key byte, n uint64) []byte {
	if n == 0 {
		return dst
	}
	dst[at]++
	return appendNumber(append(dst, key), n)
}

func appendBytesEntry(dst []byte, at int, key byte, b []byte) []byte {
	if len(b) == 0 {
		return dst
	}
	dst[at]++
	return appendBytes(append(dst, key), b)
}

func appendTextsEntry(dst []byte, at int, key byte, texts []string) []byte {
	if len(texts) == 0 {
		return dst
	}
	dst[at]++
	dst = appendHead(append(dst, key), array, uint64(len(texts)))
	for _, s := range texts {
		dst = appendText(dst, s)
	}
	return dst
}
