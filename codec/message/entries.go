package message

import "github.com/asterisque-go/asterisque/internal/cborhead"

// A map of known fields is written in one pass: its head is one byte that starts at no entries, and
// each entry that is not zero increments it. at is the position of that head in dst; there are
// never more than 23 entries.

func appendEntry(dst []byte, at int, key byte, n uint64) []byte {
	if n == 0 {
		return dst
	}
	dst[at]++
	return cborhead.AppendNumber(append(dst, key), n)
}

func appendBytesEntry(dst []byte, at int, key byte, b []byte) []byte {
	if len(b) == 0 {
		return dst
	}
	dst[at]++
	return cborhead.AppendBytes(append(dst, key), b)
}

func appendTextsEntry(dst []byte, at int, key byte, texts []string) []byte {
	if len(texts) == 0 {
		return dst
	}
	dst[at]++
	dst = cborhead.AppendHead(append(dst, key), cborhead.Array, uint64(len(texts)))
	for _, s := range texts {
		dst = cborhead.AppendText(dst, s)
	}
	return dst
}
