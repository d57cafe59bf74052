package priority

import "math/bits"

const (
	levels   = 256 // number of priorities
	pageSize = 64  // levels that share a piece of memory, and a word of a set
	pages    = levels / pageSize
)

// set is a set of levels.
type set [pages]uint64

func (s *set) add(l int)    { s[l/pageSize] |= 1 << (l % pageSize) }
func (s *set) remove(l int) { s[l/pageSize] &^= 1 << (l % pageSize) }

// highest returns the highest level of s below the level under, or -1.
func (s *set) highest(under int) int {
	for w := (under - 1) / pageSize; w >= 0 && under > 0; w-- {
		word := s[w]
		if n := under - w*pageSize; n < pageSize {
			word &= 1<<n - 1
		}
		if word != 0 {
			return w*pageSize + bits.Len64(word) - 1
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
			return w*pageSize + bits.TrailingZeros64(word)
		}
	}
	return -1
}
