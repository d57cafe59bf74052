package priority

import "math/bits"

const (
	levels   = 256 // number of priorities
	wordSize = 64  // levels in a word of a set
)

// set is a set of levels.
type set [levels / wordSize]uint64

func (s *set) add(l int)      { s[l/wordSize] |= 1 << (l % wordSize) }
func (s *set) remove(l int)   { s[l/wordSize] &^= 1 << (l % wordSize) }
func (s *set) has(l int) bool { return s[l/wordSize]&(1<<(l%wordSize)) != 0 }

// highest returns the highest level of s below the level under, or -1.
func (s *set) highest(under int) int {
	for w := (under - 1) / wordSize; w >= 0 && under > 0; w-- {
		word := s[w]
		if n := under - w*wordSize; n < wordSize {
			word &= 1<<n - 1
		}
		if word != 0 {
			return w*wordSize + bits.Len64(word) - 1
		}
	}
	return -1
}

// level returns the index of p, 0 for Min.
func level(p Priority) int { return int(p) - int(Min) }

// lowest returns the lowest level of s, or -1.
func (s *set) lowest() int {
	for w, word := range s {
		if word != 0 {
			return w*wordSize + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// below returns how many levels of s are below l.
func (s *set) below(l int) (n int) {
	for _, word := range s[:l/wordSize] {
		n += bits.OnesCount64(word)
	}
	return n + bits.OnesCount64(s[l/wordSize]&(1<<(l%wordSize)-1))
}
