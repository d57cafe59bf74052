// Package sizing estimates the memory of a decoded value from its bytes and its type, before
// anything is allocated. Each codec walks the bytes of its own format, and reports the items here.
package sizing

import (
	"math"
	"math/bits"
	"unicode/utf8"
)

// most exceeds everything that can be allocated. Sums stop there and do not overflow.
const most = math.MaxInt / 4

// Tally adds up the memory of decoding.
type Tally struct {
	limit, now, peak int
}

// NewTally returns a Tally with a limit.
func NewTally(limit int) Tally { return Tally{limit: limit} }

// Add counts n bytes.
func (t *Tally) Add(n int) {
	t.now = min(t.now+n, most)
	t.peak = max(t.peak, t.now)
}

// Drop subtracts n bytes to which nothing refers any more.
func (t *Tally) Drop(n int) { t.now -= n }

// Now returns the bytes held now.
func (t *Tally) Now() int { return t.now }

// Over reports whether the limit was exceeded.
func (t *Tally) Over() bool { return t.peak > t.limit }

// Bytes returns the highest number of bytes held at once.
func (t *Tally) Bytes() int { return t.peak }

// Text counts a string or bytes with an encoding of n bytes.
func (t *Tally) Text(n int) { t.Add(Alloc(n)) }

// Decoders recurse as deep as the data is nested. Each level uses memory of the stack, which grows,
// and stays large for a while. The stack of the first levels exists anyway.
const (
	shallow = 32
	level   = 3 << 10 // including the copies while it grows
)

// Enter counts the memory of a level of recursion from a value at the given depth, and Leave
// subtracts it.
func (t *Tally) Enter(depth int) {
	if depth >= shallow {
		t.Add(level)
	}
}

// Leave is called when all values within one at the given depth have been weighed.
func (t *Tally) Leave(depth int) {
	if depth >= shallow {
		t.Drop(level)
	}
}

// Alloc returns about the size of an allocation for n bytes: allocators have sizes in steps of an
// eighth, and of 8 KiB for large objects.
func Alloc(n int) int {
	if n > most/2 {
		return most
	}
	step := 1 << min(max(bits.Len(uint(max(n, 1)-1))-4, 4), 13)
	if n <= 8 {
		step = 8
	}
	return (n + step - 1) &^ (step - 1)
}

// Times returns n times size.
func Times(n, size int) int {
	if size > 0 && n > most/2/size {
		return most
	}
	return n * size
}

// Replaced returns the size of text after the replacement of each byte that is not UTF-8 by three
// bytes.
func Replaced(text []byte) int {
	if utf8.Valid(text) {
		return len(text)
	}
	n := 0
	for len(text) > 0 {
		_, size := utf8.DecodeRune(text)
		n += max(size, 3) // a size of one may be that of a replaced byte
		text = text[size:]
	}
	return n
}

// Sizes of the values that a decoder makes for an any.
const (
	Word   = 8   // a number
	String = 16  // a string besides its bytes
	Header = 24  // a slice besides its elements
	Iface  = 16  // an any
	Zone   = 176 // a time.Time with a zone of its own
)
