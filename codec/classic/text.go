package classic

import (
	"strings"
	"unicode/utf8"
)

const replacement = "\uFFFD"

// text returns b as the original reads it: U+FFFD replaces every sequence that begins as valid
// UTF-8 and becomes invalid.
func text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			s.WriteString(replacement)
			n = badLength(b)
		} else {
			s.Write(b[:n])
		}
		b = b[n:]
	}
	return s.String()
}

// badLength returns how many bytes at the beginning of b are replaced together. A surrogate is a
// whole sequence of three; of a form that is too long, or beyond Unicode, only the first byte is
// replaced.
func badLength(b []byte) int {
	want := 1
	switch first := b[0]; {
	case first >= 0xc2 && first <= 0xdf:
		want = 2
	case first&0xf0 == 0xe0:
		want = 3
	case first >= 0xf0 && first <= 0xf4:
		want = 4
	}
	n := 1
	for n < min(want, len(b)) && b[n]&0xc0 == 0x80 {
		n++
	}
	if n > 1 && (b[0] == 0xe0 && b[1] < 0xa0 || b[0] == 0xf0 && b[1] < 0x90 || b[0] == 0xf4 && b[1] > 0x8f) {
		return 1
	}
	return n
}
